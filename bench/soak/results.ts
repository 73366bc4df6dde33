import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { CLIENT_TIMEOUT_MS } from '../../src/time/client-timeout.ts';
import { median, quantile } from '../support/statistics.ts';
import type { Accounts } from './accounts.ts';
import { type BooksReport, sumOf } from './books.ts';
import type { Crowd } from './crowd.ts';
import type { Observed } from './observed.ts';
import type { Operator } from './operator.ts';
import { byFifths, type Fifth, type Sample, type Window } from './samples.ts';
import type { Served } from './served.ts';
import type { LogReport } from './service-log.ts';

/** All measurements of the soak from `from_ms` to `to_ms`. */
export interface Measured {
  readonly accounts: Accounts;
  readonly served: Served;
  readonly observed: Observed;
  readonly operator: Operator;
  readonly crowd: Crowd;
  readonly crowds: readonly { readonly idle: number; readonly slow: number }[];
  readonly samples: readonly Sample[];
  /** The samples before the first client and after the last one. */
  readonly before: Sample | null;
  readonly after: Sample | null;
  readonly from_ms: number;
  readonly to_ms: number;
}

const MINUTE_MS = 60_000;
const TOO_SHORT = 'too short to be judged';
/** The time of filling caches and compiling code, after which memory must be flat. */
const WARM_UP_MS = 120_000;
/** The shortest run whose memory is checked. In less time, garbage collection (some 10 %) hides growth. */
const JUDGED_MIN_MS = 300_000;
/** The largest growth from the second fifth to the last. */
const MEMORY_GROWTH_MAX = 0.1;
const DESCRIPTOR_GROWTH_MAX = 0.02;
/** The allowance for temporary descriptors or megabytes, such as those of a command or a backup. */
const A_FEW = 8;
/** The smallest share of connections open at the median. */
const CROWD_MIN = 0.9;
/** The largest share of the working clients' requests that may be refused as `overloaded`. */
const OVERLOADED_MAX = 0.01;
/** The longest time between an unseen charge and the kill that cut its answer, for clients that did not leave. */
const BEFORE_KILL_MAX_MS = 5_000;

/** Checks the measurements, complains of violations, and returns the Markdown table. */
export function results(
  measured: Measured,
  books: BooksReport,
  log: LogReport,
  asked: { readonly idle: number; readonly slow: number },
): string {
  const { observed, operator, crowd, crowds, from_ms, to_ms } = measured;
  const open = { idle: median(crowds.map(({ idle }) => idle)), slow: median(crowds.map(({ slow }) => slow)) };
  if (open.idle < CROWD_MIN * asked.idle || open.slow < CROWD_MIN * asked.slow)
    observed.complain(`Only ${open.idle} idle and ${open.slow} slow connections were open.`);
  for (const status of crowd.unexpected()) observed.complain(`A connection that does little saw ${status}.`);
  const rows: readonly Row[] = [
    ['length', `${((to_ms - from_ms) / MINUTE_MS).toFixed(1)} minutes`],
    ['idle and slow connections, median', `${open.idle} and ${open.slow}`],
    ['what they were told', inWords(Object.entries(crowd.statuses))],
    ['operator', inWords(operator.done)],
    ...clientRows(measured),
    ...serviceRows(measured),
    ...bookRows(measured, books),
    [
      'log',
      `${log.lines} lines, ${log.problems} problems, ${log.holds_released} holds of killed processes released`,
    ],
    [
      'what does not hold',
      observed.complaints().length === 0 ? 'nothing' : `${observed.complaints().length}: see below`,
    ],
  ];
  const table = ['| what | result |', '|---|---|', ...rows.map((row) => `| ${row.join(' | ')} |`)];
  return [...table, ...observed.complaints().map((sentence) => `\n- ${sentence}`)].join('\n');
}

type Row = readonly [what: string, result: string];

function clientRows({ observed, from_ms, to_ms }: Measured): readonly Row[] {
  const waits = byFifths(observed.waits, ({ latency_ms }) => latency_ms, { from_ms, to_ms });
  const all = observed.waits.map(({ latency_ms }) => latency_ms);
  for (const [index, { count }] of waits.entries())
    if (count === 0) observed.complain(`No working client was answered in fifth ${index + 1} of the time.`);
  const overloaded = observed.total('503 overloaded', 'working');
  if (overloaded > OVERLOADED_MAX * (overloaded + all.length))
    observed.complain(
      `Working clients were refused ${overloaded} times as overloaded, and answered ${all.length} times.`,
    );
  const late = observed.late.size === 0 ? 'none' : inWords(observed.late);
  const times = `${quantile(all, 0.5)}, ${quantile(all, 0.99)}, ${quantile(all, 1)} ms`;
  return [
    ...[...observed.counts].map(([kind, outcomes]): Row => [`${kind} requests`, inWords(outcomes)]),
    [`waited ${CLIENT_TIMEOUT_MS / 1_000} s or more, answered or not`, late],
    ['working clients: median, p99, longest wait', times],
    ['working clients: answers by fifth', waits.map(({ count }) => count).join(', ')],
    ['working clients: median wait by fifth, ms', waits.map((one) => Math.round(one.median)).join(', ')],
  ];
}

function serviceRows({ observed, served, samples, before, after, from_ms, to_ms }: Measured): readonly Row[] {
  const lives = served.lives.map((life) => ({
    from_ms: Math.max(from_ms, life.from_ms),
    to_ms: Math.min(to_ms, life.to_ms),
  }));
  const longest = lives.toSorted((a, b) => b.to_ms - b.from_ms - (a.to_ms - a.from_ms)).at(0);
  if (longest === undefined || before === null || after === null) {
    observed.complain('The service was not measured.');
    return [];
  }
  const memory = (of: Window) => byFifths(samples, ({ memory_mb }) => memory_mb, of);
  const descriptors = (of: Window) => byFifths(samples, (sample) => sample.descriptors, of);
  const warm = { from_ms: longest.from_ms + WARM_UP_MS, to_ms: longest.to_ms };
  const is_judged = warm.to_ms - warm.from_ms >= JUDGED_MIN_MS;
  if (is_judged) {
    checkFlat(observed, 'Memory in MB', memory(warm), MEMORY_GROWTH_MAX);
    checkFlat(observed, 'The number of descriptors', descriptors(warm), DESCRIPTOR_GROWTH_MAX);
  }
  const life = `the longest life (${((longest.to_ms - longest.from_ms) / MINUTE_MS).toFixed(1)} minutes)`;
  const warm_life = `${life} after ${WARM_UP_MS / MINUTE_MS} minutes`;
  const left = after.descriptors - before.descriptors;
  if (left > A_FEW)
    observed.complain(
      `${left} more descriptors were open after everybody had left than before anybody came.`,
    );
  const whole = { from_ms, to_ms };
  return [
    ['memory by fifths of all, MB', fifthsInWords(memory(whole))],
    [`memory by fifths of ${life}, MB`, fifthsInWords(memory(longest))],
    [`memory by fifths of ${warm_life}, MB`, is_judged ? fifthsInWords(memory(warm)) : TOO_SHORT],
    ['descriptors by fifths of all', fifthsInWords(descriptors(whole))],
    [`descriptors by fifths of ${warm_life}`, is_judged ? fifthsInWords(descriptors(warm)) : TOO_SHORT],
    ['descriptors before anybody came, after everybody left', `${before.descriptors}, ${after.descriptors}`],
    ['memory before, after', `${Math.round(before.memory_mb)}, ${Math.round(after.memory_mb)} MB`],
  ];
}

/** Checks that unseen charges belong to clients that left, or to answers cut by a kill. */
function bookRows({ observed, served, operator, accounts }: Measured, books: BooksReport): readonly Row[] {
  const paid_micros = accounts.credit_micros + operator.top_ups_micros;
  if (paid_micros !== books.top_ups_micros)
    observed.complain(
      `${dollars(paid_micros)} were paid, and the ledger has ${dollars(books.top_ups_micros)}.`,
    );
  const told = `${books.acknowledged} of ${dollars(books.acknowledged_micros)}`;
  const { project_id: leaving_id } = accounts.leaving;
  const left = books.unseen.filter(({ project_id }) => project_id === leaving_id);
  const cut = books.unseen.filter(({ project_id }) => project_id !== leaving_id);
  const unseen = books.unseen.flatMap(({ charges }) => charges);
  const difference_micros = books.charged_micros - books.acknowledged_micros;
  if (sumOf(unseen) !== difference_micros)
    observed.complain(
      `${dollars(difference_micros)} more were charged than told, and ${dollars(sumOf(unseen))} unseen.`,
    );
  const cut_charges = cut.flatMap(({ charges }) => charges);
  const list = cut_charges.map((charge) => {
    const before_ms = Math.min(
      ...served.kills.map(({ from_ms }) => from_ms - charge.created_at_ms).filter((ms) => ms >= 0),
    );
    if (before_ms > BEFORE_KILL_MAX_MS)
      observed.complain(`${charge.request_id} was charged and told to nobody, and no kill is near.`);
    return `${charge.request_id} ${dollars(charge.cost_micros)} ${before_ms} ms before a kill`;
  });
  return [
    ['charges in the ledger', `${books.charges} of ${dollars(books.charged_micros)}`],
    ['charges that clients were told of, all in the ledger', told],
    ['charges unseen by clients that left', inSum(left, observed.total('left'))],
    ['charges unseen because of a kill', [inSum(cut, observed.total('cut by a kill')), ...list].join('; ')],
    ['top-ups, as paid', dollars(books.top_ups_micros)],
    ['open holds at the end', String(books.open_holds)],
    [
      'backups restored: told charges before each, all in it, of its charges',
      books.backups.map((one) => `${one.acknowledged_before} of ${one.charges}`).join(', '),
    ],
  ];
}

function inSum(unseen: BooksReport['unseen'], requests: number): string {
  const charges = unseen.flatMap((one) => one.charges);
  return `${charges.length} of ${dollars(sumOf(charges))}, of ${requests} requests without an answer`;
}

/** Complains if the last fifth exceeds the second one by more than that share and a few. */
function checkFlat(observed: Observed, what: string, fifths: readonly Fifth[], share_max: number): void {
  const [second, last] = [fifths[1]?.median ?? Number.NaN, fifths.at(-1)?.median ?? Number.NaN];
  // The values are NaN without measurements.
  if (!(last <= second * (1 + share_max) + A_FEW))
    observed.complain(
      `${what} grew from ${Math.round(second)} in the second fifth to ${Math.round(last)} in the last.`,
    );
}

function fifthsInWords(fifths: readonly Fifth[]): string {
  return fifths.map((one) => `${Math.round(one.median)} (max. ${Math.round(one.max)})`).join(', ');
}

function inWords(counts: Iterable<readonly [string, number]>): string {
  return [...counts].map(([name, count]) => `${name}: ${count}`).join(', ');
}

function dollars(micros: number): string {
  return `$${(micros / MICROS_PER_DOLLAR).toFixed(6)}`;
}
