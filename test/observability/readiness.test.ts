import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { DEFAULT_MODEL } from '../../src/catalog/catalog.ts';
import { createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { DISK_FLOOR_BYTES } from '../../src/observability/readiness.ts';
import type { LifecycleStatus } from '../../src/served-models/model-answerer.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { metricIn, startWatchedService } from '../support/metrics.ts';
import { RecordedLog } from '../support/problems.ts';
import { ask } from '../support/requests.ts';
import {
  addAccount,
  IS_ON_POSTGRES,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';
import { holdWriteLock } from '../support/write-lock.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** After it the last result is not given again. */
const LATER_MS = 1_000;
/** After it a model that could not be loaded is tried again. */
const RELOAD_MS = 30_000;

const READY: readonly [number, unknown] = [200, { status: 'ready' }];

let service: TestService;
afterEach(() => service.close());

/** Where the default model stands. */
function status(): LifecycleStatus {
  const lifecycle = service.service.services.models.lifecycle(DEFAULT_MODEL);
  if (lifecycle === undefined) throw new Error('the default model is not there');
  return lifecycle.status();
}

async function start(options: TestServiceOptions = {}): Promise<TestService> {
  service = await startTestService({ cold: true, ...options });
  return service;
}

/** The answer of `/readyz`, some time after the one before. */
async function readyz(later_ms = LATER_MS): Promise<readonly [number, unknown]> {
  service.clock.advance(later_ms);
  const response = await service.fetch('/readyz');
  return [response.status, await response.json()];
}

function lacking(...failing: string[]): readonly [number, unknown] {
  return [503, { status: 'not_ready', failing }];
}

describe('a service that lacks nothing', () => {
  test('is healthy and ready without a key, also while its model is cold', async () => {
    await start();
    for (const [path, body] of [
      ['/healthz', { status: 'ok' }],
      ['/readyz', { status: 'ready' }],
      ['/health', { status: 'ok' }],
    ] as const) {
      const response = await service.fetch(path);
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(response.headers.get('x-request-id')).toMatch(/^req_/);
      expect(await response.json()).toEqual(body);
      const head = await service.fetch(path, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
    }
  });

  test('says how fast each model reads, once that is measured', async () => {
    const speed = { ms_per_token: 0.5, ms_per_pair: 0.000_2 };
    await start({ openEngine: (engine) => ({ ...engine, measureSpeed: () => Promise.resolve(speed) }) });
    expect(await readyz()).toEqual(READY);
    const account = await addAccount(service);
    await (await ask(service, account.key)).arrayBuffer();
    await eventually(async () => 'models' in Object(await (await service.fetch('/readyz')).json()));
    const models = [{ id: DEFAULT_MODEL, read_1000_tokens_ms: 600, read_16000_tokens_ms: 33_600 }];
    expect(await readyz()).toEqual([200, { status: 'ready', models }]);
  });

  test('leaves no line in the log and no word in the reference', async () => {
    let text = '';
    const stream = new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        text += chunk;
        done();
      },
    });
    await start({ log: createLog('info', new BoundedOutput(stream)) });
    await (await service.fetch('/healthz')).arrayBuffer();
    await readyz();
    service.service.services.readiness.drain();
    expect(await readyz()).toEqual(lacking('draining'));
    const health = await service.fetch('/health');
    expect([health.status, await health.json()]).toEqual([...lacking('draining')]);
    await (await service.fetch('/nothing')).arrayBuffer();
    await eventually(() => text.includes('"status":404'));
    expect(text).not.toContain('healthz');
    expect(text).not.toContain('readyz');
    expect(text).not.toContain('/health"');
    const document = await (await service.fetch('/swagger/json')).text();
    expect(document).not.toContain('healthz');
    expect(document).not.toContain('readyz');
    expect(document).not.toContain('/health"');
  });

  test('a flood of questions is one write a second, and costs its address nothing', async () => {
    const clock = MovableClock.stopped();
    const watched = await startWatchedService({ cold: true, clock });
    service = watched.service;
    const before = metricIn(await watched.scrape(), 'tds_commit_writes_total');
    for (let round = 0; round < 30; round += 1) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => service.fetch('/readyz')));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    }
    expect(metricIn(await watched.scrape(), 'tds_commit_writes_total')).toBe(before + 1);
    const unanswered = await service.fetch('/v1/models');
    expect(unanswered.status).toBe(401);
    await unanswered.arrayBuffer();
    await watched.listener.stop();
    watched.metrics.close();
  });
});

describe('not ready, and ready again', () => {
  test('a database that is read-only', async () => {
    await start();
    expect(await readyz()).toEqual(READY);
    service.db.$client.run('PRAGMA query_only = ON');
    expect(await readyz()).toEqual(lacking('database'));
    service.db.$client.run('PRAGMA query_only = OFF');
    expect(await readyz()).toEqual(READY);
  });

  test('a database that another process keeps locked for longer than writes wait', async () => {
    await start({ writes: { lock_deadline_ms: 200 } });
    const lock = await holdWriteLock(service.directory);
    expect(await readyz()).toEqual(lacking('database'));
    await lock.release();
    expect(await readyz()).toEqual(READY);
  });

  test('a disk with less than the floor', async () => {
    let free_bytes = DISK_FLOOR_BYTES;
    await start({ freeBytes: () => Promise.resolve(free_bytes) });
    expect(await readyz()).toEqual(READY);
    free_bytes -= 1;
    expect(await readyz()).toEqual(lacking('disk'));
    free_bytes += 1;
    expect(await readyz()).toEqual(READY);
  });

  test('a disk that cannot be asked', async () => {
    await start({ freeBytes: () => Promise.reject(new Error('no such file system')) });
    expect(await readyz()).toEqual(lacking('disk'));
  });

  test('a model that cannot be loaded, which is tried again without a request', async () => {
    let is_broken = true;
    let loads = 0;
    await start({
      openEngine: (engine) => {
        loads += 1;
        return is_broken ? Promise.reject(new Error('the weights are cut')) : engine;
      },
    });
    const account = await addAccount(service);
    expect(await readyz()).toEqual(READY);
    const refused = await ask(service, account.key);
    expect(refused.status).toBe(502);
    await refused.arrayBuffer();
    expect(loads).toBe(1);
    expect(await readyz()).toEqual(lacking('model'));
    await eventually(() => status().state !== 'loading');
    expect(await readyz()).toEqual(lacking('model'));
    // Being asked loads it at most once in a while.
    expect(loads).toBe(2);
    is_broken = false;
    expect(await readyz(RELOAD_MS)).toEqual(lacking('model'));
    await eventually(() => status().load_error === undefined);
    expect(await readyz()).toEqual(READY);
    expect(loads).toBe(3);
  });

  const REPLACEMENTS: readonly (readonly [string, (directory: string) => void, readonly string[]])[] = [
    [
      'replaced',
      (directory) => {
        const path = join(directory, 'tds.sqlite');
        cpSync(path, `${path}-other`);
        renameSync(`${path}-other`, path);
      },
      ['database'],
    ],
    ['removed with its folder', (directory) => rmSync(directory, { recursive: true }), ['database', 'disk']],
  ];
  test.skipIf(IS_ON_POSTGRES).each(REPLACEMENTS)(
    'a database file that is %s: nothing more is charged or answered, and the log says so',
    async (_, replace, failing) => {
      const recorded = new RecordedLog();
      await start({ log: recorded.log });
      const account = await addAccount(service);
      expect((await ask(service, account.key)).status).toBe(200);
      const before = await service.everything();
      expect(await readyz()).toEqual(READY);
      replace(service.directory);
      await eventually(() => recorded.text.includes('DatabaseFileGone'));
      expect(await readyz()).toEqual(lacking(...failing));
      const refused = await ask(service, account.key);
      expect([refused.status, await refused.json()]).toMatchObject([
        503,
        { error: { code: 'billing_unavailable' } },
      ]);
      expect(await service.everything()).toEqual(before);
      const told = (await recorded.problems()).filter(({ error }) => error === 'DatabaseFileGone');
      expect(told).toMatchObject([
        { step: 'readiness', causes: [{ message: expect.stringContaining('put the right file there') }] },
      ]);
    },
  );

  test('the cause is reported when a look begins to fail, however often somebody asks', async () => {
    const recorded = new RecordedLog();
    let is_asked = true;
    await start({
      log: recorded.log,
      freeBytes: () =>
        is_asked
          ? Promise.resolve(DISK_FLOOR_BYTES)
          : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' })),
    });
    const { problems } = service.service.services;
    service.db.$client.run('PRAGMA query_only = ON');
    expect(await readyz()).toEqual(lacking('database'));
    expect(await readyz()).toEqual(lacking('database'));
    expect(await recorded.problems()).toMatchObject([
      { request_id: null, step: 'readiness', code: null, error: 'SQLiteError SQLITE_READONLY' },
    ]);
    expect(problems.counts().readiness).toBe(1);
    service.db.$client.run('PRAGMA query_only = OFF');
    is_asked = false;
    expect(await readyz()).toEqual(lacking('disk'));
    expect(await readyz()).toEqual(lacking('disk'));
    expect(problems.recent().map(({ error }) => error)).toEqual([
      'Error ENOENT',
      'SQLiteError SQLITE_READONLY',
    ]);
    is_asked = true;
    expect(await readyz()).toEqual(READY);
    service.db.$client.run('PRAGMA query_only = ON');
    expect(await readyz()).toEqual(lacking('database'));
    expect(problems.counts().readiness).toBe(3);
    service.db.$client.run('PRAGMA query_only = OFF');
  });

  test('a service that stops: at once, whatever was found just before', async () => {
    await start();
    expect(await readyz()).toEqual(READY);
    service.service.services.readiness.drain();
    expect(await readyz(0)).toEqual(lacking('draining'));
    const response = await service.fetch('/healthz');
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  });

  test('every cause is named', async () => {
    await start({ freeBytes: () => Promise.resolve(0) });
    service.db.$client.run('PRAGMA query_only = ON');
    expect(await readyz()).toEqual(lacking('database', 'disk'));
    service.db.$client.run('PRAGMA query_only = OFF');
  });
});
