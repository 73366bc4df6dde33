import { describe, expect, test } from 'bun:test';
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import type { Refusal } from '../../src/errors/errors.ts';
import { readJsonBody } from '../../src/http/body.ts';
import { BODY_BYTES_MAX } from '../../src/http/body-bytes.ts';
import { type JsonValue, jsonValueOf } from '../../src/json/json-value.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { refusalCode } from './refusal-code.ts';

const COMPRESSIONS: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  zstd: (bytes) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
};
const NAMES = Object.keys(COMPRESSIONS);

function compressed(name: string, bytes: Uint8Array): Uint8Array {
  const compress = COMPRESSIONS[name];
  if (compress === undefined) throw new Error(`no compression ${name}`);
  return compress(bytes);
}

/** Reads a compressed body. Resolves with the result, its bytes, and the rest of the budget. */
async function read(name: string, body: Uint8Array, owner_bytes = 8 * BODY_BYTES_MAX) {
  const budget = new BodyBudget({ owner_bytes, total_bytes: 2 * owner_bytes, body_bytes_min: 1 });
  const limits = {
    budget,
    deadline_ms: 60_000,
    unknown_bodies: new UnknownBodies(),
    unknown_deadline_ms: 60_000,
  };
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-encoding': name },
    body: new Uint8Array(body),
  });
  let size = 0;
  const value: JsonValue | Refusal = await readJsonBody(request, { organization_id: 'org' }, limits, {
    onReceived: (bytes) => {
      size = bytes;
    },
  });
  expect(budget.taken_bytes).toBe(0);
  return { value, size };
}

/** JSON of exactly that many bytes. */
function json(bytes: number): Buffer {
  return Buffer.from('{"a":[1,"é"]}'.padEnd(bytes - 1));
}

/** The message for bytes that are not of that coding. */
function damagedMessage(name: (typeof NAMES)[number]): string {
  const format = name === 'zstd' ? 'zstd with a window of at most 8 MB' : name;
  return `The request body is not valid ${format}.`;
}

describe.each(NAMES)('%s', (name) => {
  test('a body that becomes exactly 1 MB is read; a byte more is 413', async () => {
    expect((await read(name, compressed(name, json(BODY_BYTES_MAX)))).value).toEqual(
      jsonValueOf({ a: [1, 'é'] }),
    );
    const more = await read(name, compressed(name, json(BODY_BYTES_MAX + 1)));
    expect(refusalCode(more.value)).toBe('request_too_large');
  });

  test('a bomb is 413, and no more is made of it than a piece above the limit', async () => {
    const bomb = compressed(name, Buffer.alloc(256 * BODY_BYTES_MAX));
    expect(bomb.byteLength).toBeLessThan(BODY_BYTES_MAX);
    const { value, size } = await read(name, bomb);
    expect(refusalCode(value)).toBe('request_too_large');
    expect(size - bomb.byteLength).toBeLessThanOrEqual(BODY_BYTES_MAX + 65_536);
  });

  test('what it becomes counts against the budget of its organization', async () => {
    const body = compressed(name, json(500_000));
    expect(refusalCode((await read(name, body, 400_000)).value)).toBe('overloaded');
  });

  test('bytes that are damaged, cut or followed by others are 400 with the name of the coding', async () => {
    const whole = compressed(name, json(5_000));
    const damages = {
      'no such bytes': Buffer.from('{"model":"decision-1"}'),
      'the first half': whole.subarray(0, whole.byteLength / 2),
      'followed by others': Buffer.concat([whole, Buffer.from('{}{}{}{}{}{}')]),
    };
    for (const damaged of Object.values(damages)) {
      const { value } = await read(name, damaged);
      expect(refusalCode(value)).toBe('invalid_json');
      expect(value).toMatchObject({ message: expect.not.stringContaining('model') });
    }
    expect((await read(name, damages['no such bytes'])).value).toMatchObject({
      message: damagedMessage(name),
    });
  });

  test('bytes that are cut anywhere are 400 with the name of the coding', async () => {
    const whole = compressed(name, json(5_000));
    const message = damagedMessage(name);
    for (const bytes of [1, 2, 3, 4, 5, 8, Math.floor(whole.byteLength / 2)]) {
      const { value } = await read(name, whole.subarray(0, whole.byteLength - bytes));
      expect([bytes, value]).toMatchObject([bytes, { code: 'invalid_json', message }]);
    }
  });

  test('an empty body is 400', async () => {
    expect(refusalCode((await read(name, new Uint8Array())).value)).toBe('invalid_json');
  });
});

test('zstd that asks for a window of 128 MB is refused', async () => {
  // A stream of unknown length, so that its head names the window and not the length.
  const stream = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 27 } });
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  const ended = new Promise((resolve) => stream.once('end', resolve));
  await new Promise((resolve) => stream.write('{', resolve));
  await new Promise<void>((resolve) => stream.flush(() => resolve()));
  stream.end('}');
  await ended;
  expect((await read('zstd', Buffer.concat(pieces))).value).toMatchObject({
    message: damagedMessage('zstd'),
  });
});
