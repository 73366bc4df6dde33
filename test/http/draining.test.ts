import { expect, setDefaultTimeout, test } from 'bun:test';
import { connect } from 'node:net';
import { runAudit } from '../../db/sqlite/audit.ts';
import { ledgerEntries, usageRecords } from '../../db/sqlite/schema.ts';
import type { DecisionPlanner } from '../../native/engine.ts';
import { createLog } from '../../src/log/log.ts';
import { expectError } from '../contract/expectations.ts';
import { eventually } from '../support/eventually.ts';
import { parseRaw } from '../support/raw-http.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestServiceOptions,
  TINY_MODEL,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const WARM_UPS = 2;

/** A service whose model is the real one, but answers requests only when it is told to. */
async function heldService(options: TestServiceOptions = {}) {
  const gate = Promise.withResolvers<void>();
  const at_the_model = Promise.withResolvers<void>();
  let evaluations = 0;
  const service = await startTestService({
    ...options,
    openEngine: (engine) => {
      return {
        ...engine,
        evaluate: async (plan, given) => {
          evaluations += 1;
          if (evaluations <= WARM_UPS) return await engine.evaluate(plan, given);
          at_the_model.resolve();
          const { signal } = given;
          const given_up = new Promise<never>((_, reject) =>
            signal?.addEventListener('abort', () => reject(signal.reason)),
          );
          await Promise.race([gate.promise, given_up]);
          return await engine.evaluate(plan, given);
        },
      };
    },
  });
  return {
    service,
    account: await addAccount(service),
    at_the_model: at_the_model.promise,
    answer: gate.resolve,
  };
}

test('while a request in flight is finished, new ones are told to come back, and cost nothing', async () => {
  const { service, account, at_the_model, answer } = await heldService();
  const answered = post(service, account.key, SMALL_REQUEST);
  await at_the_model;
  service.service.drain();
  const stopped = service.server.stop();
  for (const [key, path] of [
    [account.key, '/v1/decisions'],
    ['sk_svc_wrong', '/v1/systemone'],
  ] as const) {
    const refused = await post(service, key, SMALL_REQUEST, path);
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
      503,
      '5',
      'close',
    ]);
    expect(await refused.json()).toEqual({
      error: { type: 'overloaded_error', code: 'overloaded', message: expect.any(String), param: null },
      request_id: refused.headers.get('x-request-id'),
    });
  }
  expect((await service.fetch('/v1/models', { headers: { 'x-api-key': account.key } })).status).toBe(503);
  answer();
  expect((await answered).status).toBe(200);
  expect(await stopped).toBe(0);
  expect(service.db.select().from(usageRecords).all()).toHaveLength(1);
  await expect(service.fetch('/v1/models')).rejects.toThrow();
  await service.close();
});

test('what is not finished in time is cut: its client gets an error, its hold is released, nothing is charged', async () => {
  const lines: string[] = [];
  const log = { ...createLog('silent'), problem: () => void lines.push('problem') };
  const { service, account, at_the_model } = await heldService({ drain_ms: 0, log });
  const answered = post(service, account.key, SMALL_REQUEST);
  await at_the_model;
  const { hostname, port } = new URL(service.server.address);
  const arriving = connect({ host: hostname, port: Number(port) });
  let received = '';
  arriving.on('data', (data) => {
    received += data.toString('latin1');
  });
  const closed = new Promise((resolve) => arriving.once('close', resolve));
  arriving.write(
    `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${account.key}\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n`,
  );
  // Its body is asked for, so that it is being read.
  while (!received.includes('100 Continue')) await new Promise((resolve) => arriving.once('data', resolve));
  expect(await service.server.stop()).toBe(2);

  const response = await answered;
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ error: { type: 'api_error', code: 'model_unavailable' } });
  await closed;
  const refused = parseRaw(received.slice(received.indexOf('\r\n\r\n') + 4));
  expect([refused.status, JSON.parse(refused.body).error.code]).toEqual([503, 'overloaded']);

  expect(service.service.services.cut_requests.counts()).toEqual([
    { endpoint: '/v1/decisions', mode: 'fast', requests: 1 },
  ]);
  expect(lines).toEqual([]);
  expect(runAudit(service.db).open_holds).toBe(0);
  const entries = service.db.select({ kind: ledgerEntries.kind }).from(ledgerEntries).all();
  expect(entries.map(({ kind }) => kind)).not.toContain('charge');
  expect(service.db.select().from(usageRecords).all()).toMatchObject([{ status: 502, cost_micros: 0 }]);
  await service.close();
});

test('a request that waits for another one of its idempotency key is told that the service stops', async () => {
  const { service, account, at_the_model } = await heldService({ drain_ms: 0 });
  const headers = { 'x-api-key': account.key, 'idempotency-key': 'key-1' };
  const send = () =>
    service.fetch('/v1/decisions', { method: 'POST', headers, body: JSON.stringify(SMALL_REQUEST) });
  const first = send();
  await at_the_model;
  const second = send();
  const { unplanned_bodies } = service.service.services;
  await eventually(() => unplanned_bodies.taken_bytes > 0);
  expect(await service.server.stop()).toBe(2);
  expect((await first).status).toBe(502);
  await expectError(await second, 'overloaded');
  await service.close();
});

test('a request that waits for a vocabulary which does not come is cut as well', async () => {
  const asked = Promise.withResolvers<void>();
  const planner = Promise.withResolvers<DecisionPlanner>();
  const service = await startTestService({
    cold: true,
    drain_ms: 0,
    openPlanner: () => {
      asked.resolve();
      return planner.promise;
    },
  });
  const { key } = await addAccount(service);
  const answered = post(service, key, SMALL_REQUEST);
  await asked.promise;
  expect(await service.server.stop()).toBe(1);
  const response = await answered;
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ error: { code: 'model_unavailable' } });
  const entries = service.db.select({ kind: ledgerEntries.kind }).from(ledgerEntries).all();
  expect(entries.map(({ kind }) => kind)).not.toContain('hold');
  planner.resolve(await TINY_MODEL.planner());
  await service.close();
});
