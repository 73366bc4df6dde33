import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { quantileOf, Reading } from '../../src/cli/prometheus-text.ts';
import { startMetricsListener } from '../../src/http/metrics-listener.ts';
import { eventually } from '../support/eventually.ts';
import { startWatchedService, type WatchedService } from '../support/metrics.ts';
import { MAIN } from '../support/program.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, POLL_MS } from '../support/service.ts';
import { firstAsProcess } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const ESCAPE = '\x1b';
const LEAVE = `${ESCAPE}[?25h${ESCAPE}[?1049l`;

const { command } = firstAsProcess();
let watched: WatchedService;
beforeAll(async () => {
  watched = await startWatchedService();
  const account = await addAccount(watched.service);
  for (let count = 0; count < 3; count += 1) await (await ask(watched.service, account.key)).arrayBuffer();
  await (await watched.service.fetch('/nothing')).arrayBuffer();
});
afterAll(() => watched.close());

/** `tds top` on a terminal. */
function topOnTerminal(url: string, columns = 100) {
  let shown = '';
  const decoder = new TextDecoder();
  const child = Bun.spawn([process.execPath, MAIN, 'top', '--url', url], {
    terminal: {
      cols: columns,
      rows: 40,
      data(_terminal, bytes) {
        shown += decoder.decode(bytes, { stream: true });
      },
    },
  });
  return {
    child,
    shown: () => shown,
    /** Resolves when the text was shown, from that point of the output on. */
    async until(text: string, from = 0): Promise<void> {
      await eventually(() => shown.slice(from).includes(text));
    },
    /** The last whole page, line by line. */
    page(): readonly string[] {
      const pages = shown.split(`${ESCAPE}[H`);
      return (pages.at(-2) ?? '')
        .replace(`${ESCAPE}[J`, '')
        .split(`${ESCAPE}[K`)
        .map((line) => line.replace(/[\r\n]+$/, ''));
    },
  };
}

describe('with --once', () => {
  test('one page of what happened since the start, as text', async () => {
    const { code, stdout, stderr } = await command(['top', '--once', '--url', watched.listener.url]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toStartWith('Typed Decision Service 1.2.3 · test · up ');
    expect(stdout).toMatch(/^Requests {8}.*; 4 in total$/m);
    expect(stdout).toMatch(/^Refusals {8}not_found 1$/m);
    expect(stdout).toMatch(/^Problems {8}none$/m);
    expect(stdout).toMatch(/^Models {10}decision-1 ready \(fast, consistent\)$/m);
    expect(stdout).toMatch(/^Holds {11}none open$/m);
    expect(stdout).toMatch(/^platform {8}\s+[\d.]+ m?s\s+[\d.]+ m?s\s+[\d.]+ m?s$/m);
    expect(stdout).not.toContain(ESCAPE);
  });

  test('a service that is not there, or is no such service, is one sentence and exit code 1', async () => {
    const gone = await startMetricsListener(
      watched.metrics,
      { host: '127.0.0.1', port: 0 },
      watched.service.service.services.problems,
    );
    await gone.stop();
    const missing = await command(['top', '--once', '--url', gone.url]);
    expect(missing).toEqual({
      code: 1,
      stdout: '',
      stderr: `tds: There is no answer from ${gone.url}: the service is gone, or was not started with --metrics-port.\n`,
    });
    const url = watched.service.server.address;
    const other = await command(['top', '--once', '--url', `${url}/nothing`]);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toBe(`tds: ${url}/nothing answers 404: name the metrics with --url.\n`);
    const health = await command(['top', '--once', '--url', `${url}/healthz`]);
    expect(health.stderr).toBe(`tds: ${url}/healthz has no metrics of this service.\n`);
  });

  test('what would steer a terminal is not printed', async () => {
    const server = Bun.serve({
      port: 0,
      fetch: () => new Response(`tds_build_info{version="${ESCAPE}]0;x\x07",runtime="\\n${ESCAPE}[2J"} 1\n`),
    });
    const { code, stdout } = await command(['top', '--once', '--url', server.url.href]);
    await server.stop(true);
    expect(code).toBe(0);
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });

  test('without it, and without a terminal, it says so', async () => {
    const { code, stderr } = await command(['top', '--url', watched.listener.url]);
    expect([code, stderr]).toEqual([1, 'tds: There is no terminal to show a live page on: add --once.\n']);
  });
});

describe('on a terminal', () => {
  test('it refreshes, follows the size of the terminal, and q gives the terminal back', async () => {
    const top = topOnTerminal(watched.listener.url);
    await top.until('since the start');
    await top.until('the last 1 s');
    expect(top.shown()).toStartWith(`${ESCAPE}[?1049h${ESCAPE}[?25l`);
    expect(top.page().some((line) => line.length > 40)).toBe(true);
    top.child.terminal?.resize(40, 6);
    // A page of the size before may still have been on its way.
    let page = top.page();
    while (page.some((line) => line.length > 40)) {
      await Bun.sleep(POLL_MS);
      page = top.page();
    }
    expect(page.length).toBeLessThanOrEqual(7);
    top.child.terminal?.write('q');
    expect(await top.child.exited).toBe(0);
    await top.until(LEAVE);
    expect(top.shown()).toEndWith(LEAVE);
  });

  test('a terminal that changes its size is drawn anew at once, not with the next reading', async () => {
    const answered = Promise.withResolvers<Response>();
    const server = Bun.serve({ port: 0, fetch: () => answered.promise });
    const top = topOnTerminal(server.url.href);
    await top.until('Reading');
    // The whole page of the size before has come.
    await top.until(`${ESCAPE}[J`);
    const from = top.shown().length;
    top.child.terminal?.resize(12, 6);
    await top.until(`${ESCAPE}[J`, from);
    expect(top.shown().slice(from)).toContain('Reading http');
    expect(top.shown().slice(from)).not.toContain('Reading http:');
    top.child.terminal?.write('q');
    expect(await top.child.exited).toBe(0);
    answered.resolve(new Response());
    await server.stop(true);
  });

  test.each(['\x03', 'SIGTERM', 'SIGINT'] as const)('%p ends it as q does', async (how) => {
    const top = topOnTerminal(watched.listener.url);
    await top.until('Requests');
    if (how === '\x03') top.child.terminal?.write(how);
    else top.child.kill(how);
    expect(await top.child.exited).toBe(0);
    await top.until(LEAVE);
    expect(top.shown()).toEndWith(LEAVE);
  });

  test('a service that is gone is said, and shown again when it is back', async () => {
    const first = await startMetricsListener(
      watched.metrics,
      { host: '127.0.0.1', port: 0 },
      watched.service.service.services.problems,
    );
    const top = topOnTerminal(first.url);
    await top.until('Requests');
    await first.stop();
    await top.until(`There is no answer from ${first.url}`);
    const from = top.shown().length;
    const second = await startMetricsListener(
      watched.metrics,
      {
        host: '127.0.0.1',
        port: Number(new URL(first.url).port),
      },
      watched.service.service.services.problems,
    );
    await top.until('Requests', from);
    top.child.terminal?.write('q');
    expect(await top.child.exited).toBe(0);
    await second.stop();
  });
});

describe('reading metrics', () => {
  const histogram = (counts: readonly number[]) =>
    Reading.of(
      ['0.1', '0.5', '1', '+Inf']
        .map(
          (le, index) =>
            `a_bucket{le="${le}",mode="fast"} ${counts[index]}\na_bucket{le="${le}",mode="consistent"} 0`,
        )
        .join('\n'),
    );

  test('a quantile lies in its bucket, of what came between the two readings', () => {
    const before = histogram([100, 100, 100, 100]);
    const now = histogram([100, 104, 110, 110]);
    expect(quantileOf('a', 0.4, before, now)).toBeCloseTo(0.5, 9);
    expect(quantileOf('a', 0.2, before, now)).toBeCloseTo(0.3, 9);
    expect(quantileOf('a', 1, before, now)).toBeCloseTo(1, 9);
    expect(quantileOf('a', 0.5, now, now)).toBeNull();
    expect(quantileOf('a', 0.5, before, histogram([100, 100, 100, 101]))).toBe(1);
  });

  test('a service that began anew counts from nothing', () => {
    const before = histogram([100, 100, 100, 100]);
    expect(quantileOf('a', 0.5, before, histogram([0, 2, 2, 2]))).toBeCloseTo(0.3, 9);
  });

  test('labels may hold anything', () => {
    const reading = Reading.of('# HELP a b\na{x="1,y=\\"2\\"",z="{}"} 1e3\nb 2\nnonsense\n');
    expect(reading.all('a')).toEqual([{ labels: { x: '1,y="2"', z: '{}' }, value: 1_000 }]);
    expect(reading.sum('b')).toBe(2);
    expect(reading.sum('c')).toBe(0);
  });
});
