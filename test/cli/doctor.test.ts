import { expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compilerPath } from '../../native/addon/build.ts';
import { startChildServer } from '../support/child-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { firstAsProcess, tds } from './support.ts';

// The addon may have to be built for a GPU's libraries first.
setDefaultTimeout(180_000);

const { command } = firstAsProcess();
/** For those that are about something else than the weights. */
const ON_TINY = ['--gpu', 'none', '--model', TINY_WEIGHTS];

interface Doctor {
  readonly code: number;
  readonly findings: unknown;
}

async function doctor(...args: string[]): Promise<Doctor> {
  using root = temporaryDirectory();
  const { code, stdout } = await command(['doctor', '--json', '--data', join(root.path, 'data'), ...args]);
  return { code, findings: JSON.parse(stdout) };
}

const IS_LINUX = process.platform === 'linux';
/** The CPU's flags, as x64 Linux tells them; elsewhere there are no kernels of ours. */
const FLAGS = IS_LINUX ? (/^flags\s*:.*$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[0] ?? '') : '';
const INSTRUCTIONS = (
  [
    // The system may forbid AMX.
    [/\bamx_int8\b/, 'AMX|AVX-512 VNNI'],
    [/\bavx512_vnni\b/, 'AVX-512 VNNI'],
    [/\bavx2\b/, 'AVX2'],
  ] as const
).find(([flag]) => flag.test(FLAGS))?.[1];
const LIBRARY = IS_LINUX ? ' \\(libggml-cpu-\\S+\\.so\\)' : '';

const found = (subject: string, state: string, detail: RegExp) => ({
  subject,
  state,
  detail: expect.stringMatching(detail),
});

test('a machine without a GPU serves on its CPU', async () => {
  const engine =
    compilerPath() === undefined
      ? found('addon', 'slow', /no C\+\+ compiler.*node-llama-cpp instead/)
      : found('addon', 'ok', /tds-addon\.node$/);
  // The kernels are the CPU's own matter, and so is whether the system lets AMX be used.
  const kernels = {
    subject: 'kernels',
    state: expect.stringMatching(/^(ok|slow)$/),
    detail: expect.stringMatching(
      new RegExp(
        `^${INSTRUCTIONS !== undefined && compilerPath() !== undefined ? `the addon's \\((${INSTRUCTIONS})\\) and ` : ''}llama\\.cpp's${LIBRARY}, (without|which use) AMX`,
      ),
    ),
  };
  expect(await doctor('--gpu', 'none', '--port', '0')).toEqual({
    code: 0,
    findings: [
      found('weights', 'ok', /decision-1-00001-of-00002\.gguf, SHA-256 [0-9a-f]{64}$/),
      found('device', 'ok', compilerPath() === undefined ? /^cpu$/ : /^cpu \(.+\)$/),
      kernels,
      found(
        'threads',
        'ok',
        /^[1-9]\d* of [1-9]\d* cores compute(, \d+ while nothing else needs them)? \(--threads auto\)$/,
      ),
      engine,
      found('data', 'ok', /is empty: the first start fills it$/),
      found('clock', 'ok', /^20\d\d-/),
      { ...found('memory', '', /^\d+ MB/), state: expect.stringMatching(/^(ok|warning)$/) },
      { ...found('disk', '', /^\d+ MB free for /), state: expect.stringMatching(/^(ok|warning)$/) },
      found('file descriptors', 'ok', /^\d+, for \d+ connections$/),
      found('port', 'ok', /^any free one of 127\.0\.0\.1$/),
    ],
  });
});

test.skipIf(
  process.platform !== 'linux' ||
    process.arch !== 'x64' ||
    (await Bun.file('/proc/driver/nvidia/version').exists()),
)('a GPU that is asked for and cannot be used is broken, with what it lacks, and not served on', async () => {
  using root = temporaryDirectory();
  const on_gpu = ['--gpu', 'cuda', '--data', join(root.path, 'data'), '--port', '0'];
  const { code, stdout } = await tds(['doctor', '--json', ...on_gpu]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toContainEqual(
    found('device', 'broken', compilerPath() === undefined ? /cuda/ : /lib(cudart|cublas|cuda)\.so/),
  );
  const refused = await tds(['serve', '--init', ...on_gpu]);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr.trimEnd().split('\n').at(-1)).toMatch(
    /^tds: (There is no GPU to be used: |node-llama-cpp ships no binary for cuda ).+$/,
  );
});

test('a port is free, taken by another program, or taken while a server runs on the data', async () => {
  using root = temporaryDirectory();
  const data = join(root.path, 'data');
  const other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } });
  const taken = [...ON_TINY, '--port', String(other.port)];
  const sentence = new RegExp(`^Port ${other.port} is taken: stop the program .+, or choose .+ --port\\.$`);
  const broken = await doctor(...taken);
  expect(broken.code).toBe(1);
  expect(broken.findings).toContainEqual(found('port', 'broken', sentence));
  other.stop(true);
  expect((await doctor(...taken)).findings).toContainEqual(found('port', 'ok', / is free$/));
  // TEST-NET-1 is no address of this machine.
  const foreign = await doctor(...ON_TINY, '--host', '192.0.2.1', '--port', '0');
  expect(foreign.findings).toContainEqual(found('port', 'broken', /cannot be listened on \(E\w+\): choose/));

  const server = await startChildServer(data, root.path);
  const own = [...ON_TINY, '--port', new URL(server.address).port];
  const found_own = await doctor(...own, '--data', data);
  expect(found_own.findings).toContainEqual(found('port', 'ok', / is taken, and a server runs on /));
  // Another process has the port.
  expect((await doctor(...own)).findings).toContainEqual(found('port', 'broken', / is taken: /));
  expect(await server.stop()).toBe(0);
});

test.each([
  ['open to everybody', 'open'],
  ['a file', 'file'],
  ['below a file', 'file/data'],
  ['nowhere', 'loop'],
])(
  'a data directory that is %s is broken before the first start, which refuses it alike',
  async (_, name) => {
    using root = temporaryDirectory();
    mkdirSync(join(root.path, 'open'));
    chmodSync(join(root.path, 'open'), 0o777);
    writeFileSync(join(root.path, 'file'), '');
    symlinkSync(join(root.path, 'loop'), join(root.path, 'loop'));
    const data = join(root.path, name);
    const { code, findings } = await doctor(...ON_TINY, '--port', '0', '--data', data);
    const served = await command(['serve', '--init', '--port', '0', '--data', data]);
    expect([code, served.code]).toEqual([1, 1]);
    const detail = served.stderr.replace(/^tds: |\n$/g, '');
    expect(findings).toContainEqual({ subject: 'data', state: 'broken', detail });
  },
);

test('weights that are not there are broken', async () => {
  const { code, findings } = await doctor('--gpu', 'none', '--model', 'missing.gguf');
  expect(code).toBe(1);
  expect(findings).toContainEqual(found('weights', 'broken', /missing\.gguf/));
});
