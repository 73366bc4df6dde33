import { describe, expect, test } from 'bun:test';
import { Refusal } from '../../src/errors/errors.ts';
import { readJsonBody } from '../../src/http/body.ts';
import { BODY_BYTES_MAX, readBytes } from '../../src/http/body-bytes.ts';
import { jsonValueOf } from '../../src/json/json-value.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { refusalCode } from './refusal-code.ts';

const key = { organization_id: 'key' };
const a = { organization_id: 'a' };
const b = { organization_id: 'b' };
const c = { organization_id: 'c' };

function limits(given: { owner_bytes?: number; total_bytes?: number; deadline_ms?: number } = {}) {
  const { owner_bytes = 8 * BODY_BYTES_MAX, total_bytes = 8 * BODY_BYTES_MAX, deadline_ms = 60_000 } = given;
  return {
    budget: new BodyBudget({ owner_bytes, total_bytes, body_bytes_min: 1 }),
    deadline_ms,
    unknown_bodies: new UnknownBodies(),
    unknown_deadline_ms: deadline_ms,
  };
}

function request(body: string | ReadableStream, headers: Record<string, string> = {}): Request {
  return new Request('http://localhost/', { method: 'POST', body, headers });
}

/** A body that has sent so many bytes and then nothing, until it is finished. `arrived` is when they were taken. */
function unfinished(bytes: number) {
  const arrived = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        pulls += 1;
        if (pulls === 1) {
          controller.enqueue(new Uint8Array(bytes));
          return;
        }
        arrived.resolve();
        await finished.promise;
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { request: request(body), arrived: arrived.promise, finish: finished.resolve };
}

describe('readJsonBody', () => {
  test('a Content-Length beside Transfer-Encoding says nothing: the bytes are counted', async () => {
    const headers = { 'content-length': String(BODY_BYTES_MAX + 1), 'transfer-encoding': 'chunked' };
    expect(await readJsonBody(request('{"a":1}', headers), key, limits())).toEqual(jsonValueOf({ a: 1 }));
  });

  test('stops reading at the first byte too many', async () => {
    let sent = 0;
    const endless = new ReadableStream({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    expect(refusalCode(await readJsonBody(request(endless), key, limits()))).toBe('request_too_large');
    expect(sent).toBeLessThan(30);
  });

  test('a body that breaks off is invalid_json', async () => {
    const broken = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"a"'));
        controller.error(new Error('gone'));
      },
    });
    expect(refusalCode(await readJsonBody(request(broken), key, limits()))).toBe('invalid_json');
  });

  test('a body that is not there in time is request_timeout', async () => {
    const { request: late } = unfinished(5);
    expect(refusalCode(await readJsonBody(late, key, limits({ deadline_ms: 1 })))).toBe('request_timeout');
  });
});

describe('the budget of unfinished bodies', () => {
  test('an owner that has used up its own is refused, others are not, and finished bodies give it back', async () => {
    const bounds = limits({ owner_bytes: 1_000, total_bytes: 2_000 });
    const first = unfinished(900);
    const first_bytes = readBytes(first.request, a, bounds);
    await first.arrived;
    const refused = await readBytes(request('x'.repeat(200)), a, bounds);
    expect(refusalCode(refused)).toBe('overloaded');
    expect(refused instanceof Refusal ? refused.retry_after_s : null).toBe(1);
    expect(await readBytes(request('x'.repeat(200)), b, bounds)).toHaveLength(200);
    first.finish();
    expect(await first_bytes).toHaveLength(900);
    expect(bounds.budget.taken_bytes).toBe(0);
    expect(await readBytes(request('x'.repeat(1_000)), a, bounds)).toHaveLength(1_000);
  });

  test('all owners together stay below the total, and each leaves the next as much as it has', async () => {
    const bounds = limits({ owner_bytes: 1_000, total_bytes: 1_500 });
    expect(refusalCode(await readBytes(request('x'.repeat(751)), a, bounds))).toBe('overloaded');
    const first = unfinished(750);
    const first_bytes = readBytes(first.request, a, bounds);
    await first.arrived;
    expect(refusalCode(await readBytes(request('x'.repeat(376)), b, bounds))).toBe('overloaded');
    expect(await readBytes(request('x'.repeat(375)), c, bounds)).toHaveLength(375);
    first.finish();
    await first_bytes;
    expect(bounds.budget.taken_bytes).toBe(0);
  });

  test('whatever a body ends with, its bytes are given back', async () => {
    const bounds = limits({ deadline_ms: 1 });
    await readBytes(unfinished(500).request, a, bounds);
    await readBytes(request('x'.repeat(BODY_BYTES_MAX + 1)), a, bounds);
    const broken = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(500));
        controller.error(new Error('gone'));
      },
    });
    await readBytes(request(broken), a, bounds);
    expect(bounds.budget.taken_bytes).toBe(0);
  });
});
