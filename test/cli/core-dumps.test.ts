import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MAIN } from '../support/program.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';

// A server loads its model, on cores that other tests use too.
setDefaultTimeout(120_000);

const IS_LINUX = process.platform === 'linux';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tds-core-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const SERVE = [
  ...['serve', '--init', '--json', '--data', 'data', '--port', '0'],
  ...['--gpu', 'none', '--threads', '1', '--model', TINY_WEIGHTS],
];

/** Starts a command in a folder of its own, where the system would leave a core file. */
function startDumping(name: string, command: readonly string[]) {
  const folder = join(directory, name);
  mkdirSync(folder);
  const child = Bun.spawn(['sh', '-c', 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', 'sh', ...command], {
    cwd: folder,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  return { child, folder };
}

/** Reads until the text has come. */
async function printed(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  let all = '';
  const decoder = new TextDecoder();
  for await (const piece of stream) {
    all += decoder.decode(piece, { stream: true });
    if (all.includes(text)) return;
  }
  throw new Error(`It ended without ${text}: ${all}`);
}

async function crash(child: Bun.Subprocess): Promise<void> {
  process.kill(child.pid, 'SIGSEGV');
  await child.exited;
  expect(child.signalCode).not.toBeNull();
}

/** Starts a command without root's capabilities over other processes, so that it sees them as their own user does. */
const AS_ANY_USER =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace'] : [];

/** Returns true if another process of the same user may read the process's memory. */
const isReadable = (pid: number): boolean =>
  Bun.spawnSync([...AS_ANY_USER, 'readlink', `/proc/${pid}/exe`]).exitCode === 0;

/** The core limits of a process, as Linux tells them. */
const coreLimits = (pid: number): readonly string[] =>
  /^Max core file size\s+(\S+)\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.slice(1) ?? [];

/**
 * Resolves with true if a crash leaves a core file here. The system may pipe it to a handler, or the hard limit may be
 * 0.
 */
async function leavesCores(): Promise<boolean> {
  const { child, folder } = startDumping('control', ['sh', '-c', 'echo ready; exec cat']);
  await printed(child.stdout, 'ready');
  await crash(child);
  return readdirSync(folder).length > 0;
}

/** Ends the command when `ready` has come, and expects no core file of it. */
async function expectNoCore(
  command: readonly string[],
  ready: (child: Bun.Subprocess<'pipe', 'pipe', 'ignore'>) => Promise<void>,
) {
  const leaves_cores = await leavesCores();
  const { child, folder } = startDumping('crashed', [process.execPath, MAIN, ...command]);
  await ready(child);
  // A handler is started at any limit but 1; a hard limit of 0 cannot be raised to it.
  const [soft, hard] = coreLimits(child.pid);
  expect([soft, hard]).toEqual(
    leaves_cores ? ['1', '1'] : [expect.stringMatching(/^[01]$/), expect.stringMatching(/^[01]$/)],
  );
  await crash(child);
  expect(readdirSync(folder).filter((name) => name !== 'data')).toEqual([]);
}

test.skipIf(!IS_LINUX)('a service that crashes leaves no core file, which would hold records and keys', () =>
  expectNoCore(SERVE, ({ stdout }) => printed(stdout, '"address"')),
);

test.skipIf(!IS_LINUX)('nor does a command that answers in process, on the evaluator without the addon', () =>
  expectNoCore(['decide', '-', '--local', '--evaluator', 'llama', '--gpu', 'none'], async ({ pid }) => {
    // It reads the questions from standard input; the limit is set before the command begins.
    const deadline_ms = Date.now() + 60_000;
    while (coreLimits(pid)[1] !== '1' && coreLimits(pid)[1] !== '0' && Date.now() < deadline_ms)
      await Bun.sleep(5);
  }),
);

test.skipIf(!IS_LINUX)(
  'no handler of crashes gets its memory, and no other process of its user may read it',
  async () => {
    const control = Bun.spawn([...AS_ANY_USER, 'sh', '-c', 'echo ready; exec cat'], {
      stdin: 'pipe',
      stdout: 'pipe',
    });
    await printed(control.stdout, 'ready');
    expect(isReadable(control.pid)).toBe(true);
    control.kill();
    const { child } = startDumping('served', [...AS_ANY_USER, process.execPath, MAIN, ...SERVE]);
    await printed(child.stdout, '"address"');
    expect(isReadable(child.pid)).toBe(false);
    child.kill();
    await child.exited;
  },
);

test.skipIf(!IS_LINUX)(
  'weights that are tried in a process of their own are what the system ends first',
  async () => {
    const { child } = startDumping('trial', [...AS_ANY_USER, process.execPath, MAIN, 'weights-trial']);
    const score = () => readFileSync(`/proc/${child.pid}/oom_score_adj`, 'utf8').trim();
    const deadline_ms = Date.now() + 60_000;
    while (score() !== '1000' && Date.now() < deadline_ms) await Bun.sleep(5);
    expect(score()).toBe('1000');
    child.kill();
    await child.exited;
  },
);
