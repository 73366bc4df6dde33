import { expect, spyOn } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram, runCommandLine } from '../../src/cli/program.ts';
import { OWNER_ONLY_DIRECTORY, OWNER_ONLY_FILE } from '../../src/files/file-permissions.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { MAIN } from '../support/program.ts';

/** The result of a finished command. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `tds …` as its own process, with nothing of our environment that it could read. */
export async function tds(
  args: readonly string[],
  options: { readonly env?: Record<string, string>; readonly cwd?: string; readonly stdin?: string } = {},
): Promise<Finished> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: options.cwd ?? process.cwd(),
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', NO_COLOR: '1', ...options.env },
    stdin: options.stdin === undefined ? 'ignore' : new Blob([options.stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `tds …` in this process, which takes a tenth of the CPU time of a process of its own. One runs at a time,
 * because all write to the same standard output. It is no command that waits for a lock of this process.
 */
export function inProcess(args: readonly string[]): Promise<Finished> {
  const finished = last.then(() => captured(args));
  last = finished.catch(() => undefined);
  return finished;
}

async function captured(args: readonly string[]): Promise<Finished> {
  const outputs = [process.stdout, process.stderr].map((stream) => {
    const { isTTY } = stream;
    stream.isTTY = false;
    let text = '';
    const spy = spyOn(stream, 'write').mockImplementation((written) => {
      text += String(written);
      return true;
    });
    return () => {
      spy.mockRestore();
      stream.isTTY = isTTY;
      return text;
    };
  });
  process.exitCode = 0;
  let code: number;
  let written: readonly string[] = [];
  try {
    code = await runCommandLine(createProgram(), args);
  } finally {
    process.exitCode = 0;
    written = outputs.map((end) => end());
  }
  const [stdout = '', stderr = ''] = written;
  return { code, stdout, stderr };
}

/** The answer of one `tds init`, and the files that it made. */
let first: Promise<{ readonly answer: unknown; readonly files: ReadonlyMap<string, Uint8Array> }> | undefined;

async function initializedOnce() {
  const root = temporaryDirectory();
  const data = join(root.path, 'data');
  const answer = await tdsJson(['init', '--data', data]);
  const files = new Map(readdirSync(data).map((name) => [name, readFileSync(join(data, name))]));
  root.remove();
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

/** Expects that a command failed with that sentence, and printed nothing else. */
export function expectRefused(finished: Finished, sentence: string): void {
  expect(finished).toEqual({ code: 1, stdout: '', stderr: `tds: ${sentence}\n` });
}

/** Runs `tds … --json`, which must succeed without a word on standard error, and returns what it printed. */
export async function tdsJson(args: readonly string[], run = tds): Promise<unknown> {
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
