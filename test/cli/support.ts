import { expect } from 'bun:test';
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

/** Expects that a command failed with that sentence, and printed nothing else. */
export function expectRefused(finished: Finished, sentence: string): void {
  expect(finished).toEqual({ code: 1, stdout: '', stderr: `tds: ${sentence}\n` });
}

/** Runs `tds … --json`, which must succeed without a word on standard error, and returns what it printed. */
export async function tdsJson(args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await tds([...args, '--json']);
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
