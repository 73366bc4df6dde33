import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { verifyWeights } from '../../native/engine.ts';
import { withMetadata, writeTinyModel } from '../native/support/gguf.ts';
import { TINY_CHAT, TINY_MARKERS } from '../native/support/models.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import type { Finished } from '../support/finished.ts';
import { canInspect } from '../support/process-files.ts';
import { ALL_TYPES, SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { field, firstAsProcess, tds } from './support.ts';

setDefaultTimeout(3 * MODEL_TEST_TIMEOUT_MS);

const ON_CPU = ['--gpu', 'none', '--threads', '1'];
const CLIENTS = 2;

const root = temporaryDirectory();
const data = join(root.path, 'data');
/** Where the added model's weights lie. */
const served = join(root.path, 'served.gguf');
const [first, second, chat, broken, ending] = ['first', 'second', 'chat', 'broken', 'ending'].map((name) =>
  join(root.path, `${name}.gguf`),
) as [string, string, string, string, string];

let server: ChildServer;
let key: string | null;
afterAll(async () => {
  await server.stop();
  root.remove();
});
beforeAll(async () => {
  await writeTinyModel(first, TINY_MARKERS);
  await writeTinyModel(second, { ...TINY_MARKERS, words: [' the', ' is', ' twice', ' order'] });
  await writeTinyModel(chat, TINY_CHAT);
  writeFileSync(broken, readFileSync(first).subarray(0, 60_000));
  writeFileSync(ending, withMetadata(readFileSync(first), 'llama.block_count', 1_000));
  put(first);
  await start();
  const limits = ['--requests-per-minute', '1000000', '--tokens-per-minute', '1000000000'];
  expect(await tds(['org', 'tier', 'My organization', ...limits, '--data', data])).toMatchObject({ code: 0 });
  const words = ['--weights', served, '--price', '1', ...ON_CPU, '--data', data];
  expect(await tds(['model', 'add', 'decision-2', ...words])).toMatchObject({ code: 0 });
  expect(await tds(['model', 'alias', 'latest', 'decision-2', '--data', data])).toMatchObject({ code: 0 });
});

async function start(): Promise<void> {
  server = await startChildServer(data, root.path, [], { embedded: true });
  key = server.key ?? key;
}

/** Moves a copy of the file to the place of the added model's weights, as an operator must. */
function put(path: string): void {
  copyFileSync(path, `${served}.new`);
  renameSync(`${served}.new`, served);
}

const { command, commandJson } = firstAsProcess();
const reloadWords = (id: string, words: readonly string[] = []) =>
  ['model', 'reload', id, ...words, ...ON_CPU, '--data', data] as const;
const reload = (id: string, ...words: string[]) => command(reloadWords(id, words));

const SWAPPED = (id: string) => ({ code: 0, stdout: `${id} is answered for by the new weights.\n` });

function ask(model: string, mode: 'fast' | 'consistent' = 'fast'): Promise<Response> {
  return fetch(`${server.address}/v1/decisions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...SMALL_REQUEST, questions: ALL_TYPES, model, mode }),
  });
}

/** The answers as text, which differ from weights to weights; the status of what is no answer. */
async function answered(model: string, mode: 'fast' | 'consistent' = 'fast'): Promise<string> {
  const response = await ask(model, mode);
  const body = await response.json();
  return response.status === 200 ? JSON.stringify(field(body, 'answers')) : `${response.status}`;
}

/** Resolves with the answers of continuous clients while `work` runs, and once more after it, in alternating modes. */
async function under<Result>(
  model: string,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly fast: Set<string>; readonly consistent: Set<string> }> {
  let is_over = false;
  const seen = { fast: new Set<string>(), consistent: new Set<string>() };
  const client = async () => {
    for (let is_last = false; !is_last; ) {
      is_last = is_over;
      for (const mode of ['fast', 'consistent'] as const) seen[mode].add(await answered(model, mode));
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  const result = await work().finally(() => {
    is_over = true;
  });
  await clients;
  return { result, ...seen };
}

/** A model that has just been added, or was idle, starts its consistent mode first. */
async function warm(model: string): Promise<void> {
  await eventually(async () => (await answered(model, 'consistent')) !== '503');
}

const row = async () => {
  const all = await commandJson(['model', 'list', '--data', data]);
  return Array.isArray(all) ? all.find((each) => field(each, 'id') === 'decision-2') : undefined;
};

const threads = () =>
  Number(/^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]);

/** Mappings of the process that hold the weights' file, of whatever content. */
const mapped = () => readFileSync(`/proc/${server.pid}/maps`, 'utf8').split('served.gguf').length - 1;

/** How often the server has begun to load a model anew. */
const begun = () => server.output().split('loading a model anew').length - 1;

/** Asks for a reload; resolves when the server has begun with it. */
async function reloading(id: string, ...words: string[]): Promise<{ readonly finished: Promise<Finished> }> {
  const before = begun();
  const finished = reload(id, ...words);
  await eventually(() => begun() !== before);
  return { finished };
}

describe('tds model reload', () => {
  test('swaps weights under load: no request fails, each is answered by the old or the new ones, and the old are freed', async () => {
    await warm('decision-2');
    const before = {
      fast: await answered('decision-2'),
      consistent: await answered('decision-2', 'consistent'),
    };
    const row_before = await row();
    const threads_before = threads();
    put(second);
    const { result, fast, consistent } = await under('latest', () => reload('decision-2'));
    expect(result).toMatchObject(SWAPPED('decision-2'));
    const after = {
      fast: await answered('decision-2'),
      consistent: await answered('decision-2', 'consistent'),
    };
    expect(after.fast).not.toBe(before.fast);
    expect(after.consistent).not.toBe(before.consistent);
    expect(fast).toEqual(new Set([before.fast, after.fast]));
    expect(consistent).toEqual(new Set([before.consistent, after.consistent]));
    // Price, aliases and all else are as before.
    expect(await row()).toEqual({
      ...row_before,
      // Other keys and values are kept now.
      memory_bytes: expect.any(Number),
      weights_sha256: (await verifyWeights(second)).sha256,
    });
    await eventually(() => threads() <= threads_before);
    if (canInspect(server.pid)) expect(mapped()).toBeLessThanOrEqual(1);
  });

  test('weights that do not load, or are asked otherwise, change nothing, and the command says why', async () => {
    const before = await answered('decision-2');
    for (const [path, said] of [
      [broken, served],
      [import.meta.path, 'is not a GGUF file'],
      [chat, 'was added for markers-v1'],
      // llama.cpp ends the process that loads it: another than the service.
      [ending, 'was ended by SIGABRT'],
    ] as const) {
      put(path);
      const row_before = await row();
      const { result, fast } = await under('decision-2', () => reload('decision-2'));
      expect(result).toMatchObject({ code: 1, stdout: '' });
      const last = result.stderr.trimEnd().split('\n').at(-1);
      expect(last).toStartWith('tds: ');
      expect(last).toEndWith('. The weights before stay.');
      expect(last).toContain(said);
      expect(fast).toEqual(new Set([before]));
      // The speed of the model may be measured meanwhile, which keeps a prefix of a token: less than 5,000 bytes.
      const memory_bytes = expect.closeTo(Number(field(row_before, 'memory_bytes')), -4);
      expect(await row()).toEqual({ ...row_before, memory_bytes });
    }
    const missing = await reload('decision-2', '--weights', join(root.path, 'nowhere.gguf'));
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('is missing') });
    put(second);
    // Its log may come later than the command's end.
    await eventually(() => server.output().split('a model was not loaded anew').length > 5);
  });

  test('takes weights of another path, and then the row has them', async () => {
    const before = await answered('decision-2');
    expect(await reload('decision-2', '--weights', first)).toMatchObject(SWAPPED('decision-2'));
    expect(await row()).toMatchObject({ weights: first });
    expect(await answered('decision-2')).not.toBe(before);
    expect(await reload('decision-2', '--weights', served)).toMatchObject(SWAPPED('decision-2'));
    expect(await answered('decision-2')).toBe(before);
  });

  test('two at once, and one of another model: all are done, and the last file is served', async () => {
    put(first);
    const { result, fast } = await under('decision-2', () =>
      Promise.all(['decision-2', 'decision-2', 'decision-1'].map((id) => tds(reloadWords(id)))),
    );
    expect(result).toMatchObject([SWAPPED('decision-2'), SWAPPED('decision-2'), SWAPPED('decision-1')]);
    expect(fast).not.toContain('502');
    expect(fast).not.toContain('503');
    expect(fast).toContain(await answered('decision-2'));
    expect(await row()).toMatchObject({ weights_sha256: (await verifyWeights(first)).sha256 });
  });

  test('the embedded model is loaded anew, keeps its answers, and takes no weights of its own', async () => {
    const before = {
      fast: await answered('decision-1'),
      consistent: await answered('decision-1', 'consistent'),
    };
    const { result, fast, consistent } = await under('decision-1', () => reload('decision-1'));
    expect(result).toMatchObject(SWAPPED('decision-1'));
    expect(fast).toEqual(new Set([before.fast]));
    expect(consistent).toEqual(new Set([before.consistent]));
    const refused = await reload('decision-1', '--weights', second);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('comes with the program') });
  });

  test('a model that is not there, or has no weights, is refused with a sentence', async () => {
    for (const id of ['nothing', 'chat-1']) {
      const { code, stdout, stderr } = await reload(id);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^tds: [^\n]+\.\n$/);
    }
  });

  test('only the user of the service may ask, and what is no request is not answered', async () => {
    const path = join(data, 'reload.sock');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const socket = connect(path);
    let said = '';
    socket.on('data', (piece) => {
      said += piece.toString();
    });
    socket.write('{"id": 1}\n');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(said).toBe('');
  });
});

describe('a server that ends', () => {
  test('killed in between: the command says so, and the next start serves what the row names', async () => {
    put(first);
    expect(await reload('decision-2')).toMatchObject(SWAPPED('decision-2'));
    const before = await answered('decision-2');
    for (const pause_ms of [0, 5, 20, 80]) {
      const { finished } = await reloading('decision-2', '--weights', second);
      // Any moment is as good as another: the kill may come before, during or after the swap.
      await Bun.sleep(pause_ms);
      server.signal('SIGKILL');
      const { code, stderr } = await finished;
      const weights = field(await row(), 'weights');
      if (code === 1) expect(stderr).toContain('ended before it had loaded decision-2');
      else expect(weights).toBe(second);
      await server.stop();
      await start();
      const after = await answered('decision-2');
      expect(after === before).toBe(weights === served);
      if (weights !== served) {
        expect(await reload('decision-2', '--weights', served)).toMatchObject(SWAPPED('decision-2'));
      }
    }
  });

  test('stopped in between: the command gets its answer, and the server ends as always', async () => {
    const { finished } = await reloading('decision-1');
    expect(await server.stop()).toBe(0);
    const { code, stderr } = await finished;
    if (code !== 0)
      expect(stderr).toMatch(/(is being stopped|has been closed)\. The weights before stay\.\n$/);
  });

  test('without a server the weights are checked by the command, and the next start takes them', async () => {
    put(second);
    const { code, stdout } = await tds(reloadWords('decision-2'));
    expect([code, stdout]).toEqual([
      0,
      'The weights of decision-2 are good, and the next load takes them.\n',
    ]);
    expect(await row()).toMatchObject({ weights_sha256: (await verifyWeights(second)).sha256 });
    put(chat);
    const { code: refused, stderr } = await tds(reloadWords('decision-2'));
    expect(refused).toBe(1);
    expect(stderr).toContain('was added for markers-v1');
    put(second);
    await start();
    expect((await ask('decision-2')).status).toBe(200);
  });
});
