import { expect, spyOn } from 'bun:test';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { createProgram, runCommandLine } from '../../src/cli/program.ts';
import { OWNER_ONLY_DIRECTORY, OWNER_ONLY_FILE } from '../../src/files/file-permissions.ts';
import { type Finished, finished } from '../support/finished.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs `tds …` as its own process, with nothing of our environment that it could read, by the program `within` if given. */
export function tds(
  args: readonly string[],
  options: CommandOptions & { readonly stdin?: string; readonly within?: readonly string[] } = {},
): Promise<Finished> {
  const child = Bun.spawn([...(options.within ?? []), process.execPath, MAIN, ...args], {
    cwd: options.cwd ?? process.cwd(),
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', NO_COLOR: '1', ...options.env },
    stdin: options.stdin === undefined ? 'ignore' : new Blob([options.stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return finished(child);
}

/** Takes root's right to read every file away, which no other user has; null where there is no program for it. */
export const withoutRootsRights =
  process.getuid?.() !== 0
    ? []
    : Bun.which('setpriv') === null
      ? null
      : ['setpriv', '--bounding-set=-dac_override,-dac_read_search'];

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `tds …` in this process, which takes a tenth of the CPU time of a process of its own. One runs at a time,
 * because all write to the same standard output. It is no command that waits for a lock of this process.
 */
export function inProcess(args: readonly string[], options?: CommandOptions): Promise<Finished> {
  const result = last.then(() => captured(args, options));
  last = result.catch(() => undefined);
  return result;
}

/**
 * Returns what runs `tds …` for one file of tests: the first call of each command as a process of its own, which is
 * also seen to end, and all later ones in this process.
 */
export function firstAsProcess() {
  const called = new Set<string>();
  const command: typeof inProcess = (args, options) => {
    const words = args.slice(0, 2).filter((word) => /^[a-z]+$/.test(word));
    const name = words.join(' ');
    const run = called.has(name) ? inProcess : tds;
    called.add(name);
    return run(args, options);
  };
  return { command, commandJson: (args: readonly string[]) => tdsJson(args, command) };
}

async function captured(
  args: readonly string[],
  { env = {}, cwd = process.cwd() }: CommandOptions = {},
): Promise<Finished> {
  const before = { env: { ...process.env }, cwd: process.cwd() };
  Object.assign(process.env, env);
  process.chdir(cwd);
  using root = temporaryDirectory();
  const outputs = [process.stdout, process.stderr].map((stream) => {
    const { isTTY, fd } = stream;
    const path = join(root.path, `${fd}`);
    const file = openSync(path, 'w');
    // A text that is printed once is written to the descriptor.
    Object.assign(stream, { isTTY: false, fd: file });
    const spy = spyOn(stream, 'write').mockImplementation((written) => {
      writeSync(file, String(written));
      return true;
    });
    return () => {
      spy.mockRestore();
      Object.assign(stream, { isTTY, fd });
      closeSync(file);
      return readFileSync(path, 'utf8');
    };
  });
  process.exitCode = 0;
  let code: number;
  let written: readonly string[] = [];
  try {
    code = await runCommandLine(createProgram(), args);
  } finally {
    process.exitCode = 0;
    process.chdir(before.cwd);
    for (const name of Object.keys(env)) delete process.env[name];
    Object.assign(process.env, before.env);
    written = outputs.map((end) => end());
  }
  const [stdout = '', stderr = ''] = written;
  return { code, stdout, stderr };
}

/** The answer of one `tds init`, and the files that it made. */
let first: Promise<{ readonly answer: unknown; readonly files: ReadonlyMap<string, Uint8Array> }> | undefined;

async function initializedOnce() {
  using root = temporaryDirectory();
  const data = join(root.path, 'data');
  const answer = await tdsJson(['init', '--data', data]);
  const files = new Map(readdirSync(data).map((name) => [name, readFileSync(join(data, name))]));
  return { answer, files };
}

/**
 * Makes a data directory with the files of a `tds init`, which runs once for all tests of this process. Returns its
 * answer, whose ids and key are the same for all of them.
 */
export async function initializeData(data: string): Promise<unknown> {
  first ??= initializedOnce();
  const { answer, files } = await first;
  mkdirSync(data, { recursive: true, mode: OWNER_ONLY_DIRECTORY });
  for (const [name, bytes] of files) writeFileSync(join(data, name), bytes, { mode: OWNER_ONLY_FILE });
  return answer;
}

/** Opens both ends of a new pipe in the folder, because opening one end waits for the other. */
export function openPipe(folder: string) {
  const path = join(folder, 'pipe');
  if (!Bun.spawnSync(['mkfifo', path]).success) throw new Error('there is no mkfifo');
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { path, reader, writer: openSync(path, constants.O_WRONLY) };
}

/** Expects that a command failed with that sentence, and printed nothing else. */
export function expectRefused(refused: Finished, sentence: string): void {
  expect(refused).toEqual({ code: 1, stdout: '', stderr: `tds: ${sentence}\n` });
}

/** Runs `tds … --json`, which must succeed without a word on standard error, and returns what it printed. */
export async function tdsJson(args: readonly string[], run: typeof inProcess = tds): Promise<unknown> {
  const { code, stdout, stderr } = await run([...args, '--json']);
  if (code !== 0 || stderr !== '') throw new Error(`tds ${args.join(' ')} exited with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** The value of a field of a JSON object; undefined for none. */
export function field(value: unknown, name: string): unknown {
  const fields = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return fields.find(([key]) => key === name)?.[1];
}

/** The value of a text field of a JSON object. */
export function textField(value: unknown, name: string): string {
  const found = field(value, name);
  if (typeof found !== 'string') throw new Error(`${JSON.stringify(value)} has no text ${name}`);
  return found;
}
