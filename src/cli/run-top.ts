import type { Values } from '../config/settings.ts';
import { pauseByTimer } from '../time/pause.ts';
import { CommandFailed } from './command-failed.ts';
import { Reading } from './prometheus-text.ts';
import { findAddress } from './server-addresses.ts';
import { type TimedReading, topPage } from './top-page.ts';

const REFRESH_MS = 1_000;
const ANSWER_MS = 3_000;
/** The time that a page covers: long enough for quantiles, short enough to be current. */
const WINDOW_MS = 10_000;

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const CLEAR_LINE = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

const KEYS_THAT_END = ['q', 'Q', '\x03'];
const SIGNALS_THAT_END = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface TopOptions extends Values<'data'> {
  /** The address of the metrics; undefined looks it up in the data directory. */
  readonly url?: string;
  readonly once?: true;
}

/** The metrics cannot be read; the message has the reason and advice. */
class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

/**
 * Prints one page with `--once`; otherwise shows pages until q, Ctrl-C or a signal. Throws `CommandFailed`.
 */
export async function runTop({ data, url = findAddress(data, 'metrics'), once }: TopOptions): Promise<void> {
  if (url === undefined) {
    throw new CommandFailed(
      `No service with metrics runs on ${data}: start it with --metrics-port, or name its metrics with --url.`,
    );
  }
  if (once) {
    const reading = await readMetrics(url).catch((error: unknown) => {
      throw error instanceof Unreadable ? new CommandFailed(error.message, { cause: error }) : error;
    });
    process.stdout.write(`${topPage(reading, null).map(printable).join('\n')}\n`);
    return;
  }
  if (!process.stdout.isTTY)
    throw new CommandFailed('There is no terminal to show a live page on: add --once.');
  await showPages(url);
}

async function showPages(url: string): Promise<void> {
  const ended = new AbortController();
  const { stdin, stdout } = process;
  let lines: readonly string[] = [`Reading ${url} …`];
  const draw = () => stdout.write(screen(lines, stdout.rows, stdout.columns));
  const end = () => ended.abort();
  const onKey = (keys: Buffer) => {
    if (KEYS_THAT_END.some((key) => keys.includes(key))) end();
  };
  stdout.write(ENTER);
  // The terminal must be restored however the process ends.
  process.once('exit', restore);
  for (const signal of SIGNALS_THAT_END) process.on(signal, end);
  stdout.on('resize', draw);
  if (stdin.isTTY) stdin.setRawMode(true).on('data', onKey).resume();
  try {
    draw();
    const readings: TimedReading[] = [];
    while (!ended.signal.aborted) {
      lines = await nextPage(url, readings, ended.signal);
      if (ended.signal.aborted) break;
      draw();
      await pauseByTimer(REFRESH_MS, ended.signal);
    }
  } finally {
    stdout.off('resize', draw);
    for (const signal of SIGNALS_THAT_END) process.off(signal, end);
    if (stdin.isTTY) stdin.off('data', onKey).pause();
    process.off('exit', restore);
    restore();
  }
}

function restore(): void {
  if (process.stdin.isTTY) process.stdin.setRawMode(false);
  process.stdout.write(LEAVE);
}

/**
 * Returns the next page. For a service that is gone it is one sentence, and earlier readings are forgotten.
 */
async function nextPage(
  url: string,
  readings: TimedReading[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    const now = await readMetrics(url, signal);
    while ((readings[0]?.at_ms ?? now.at_ms) < now.at_ms - WINDOW_MS) readings.shift();
    const [before = null] = readings;
    readings.push(now);
    return topPage(now, before);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    readings.length = 0;
    return [error.message, 'It is tried again every second; q ends this.'];
  }
}

/** Reads the present metrics. Rejects with `Unreadable`. */
async function readMetrics(url: string, signal?: AbortSignal): Promise<TimedReading> {
  const timeout = AbortSignal.timeout(ANSWER_MS);
  let text: string;
  try {
    const response = await fetch(url, {
      // The environment's proxy may not reach this machine.
      proxy: false,
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    if (!response.ok) throw new Unreadable(`${url} answers ${response.status}: name the metrics with --url.`);
    text = await response.text();
  } catch (error) {
    if (error instanceof Unreadable) throw error;
    throw new Unreadable(
      `There is no answer from ${url}: the service is gone, or was not started with --metrics-port.`,
      { cause: error },
    );
  }
  const reading = Reading.of(text);
  if (!reading.has('tds_build_info')) throw new Unreadable(`${url} has no metrics of this service.`);
  return { at_ms: Date.now(), reading };
}

/** Returns the page for a terminal of that size; lines that do not fit are cut. */
function screen(lines: readonly string[], rows: number, columns: number): string {
  // The line is cleared before it is written, because after a full line the cursor is still on its last
  // character.
  const shown = lines.slice(0, rows).map((line) => `${CLEAR_LINE}${printable(line).slice(0, columns)}`);
  return `${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`;
}

/** Returns the line without control characters, because the text comes from elsewhere. */
function printable(line: string): string {
  return line.replace(/\p{Cc}/gu, '?');
}
