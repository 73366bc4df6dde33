import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { MS_PER_S } from '../time/clock.ts';
import { grown, NOTHING_YET, quantileOf, type Reading } from './prometheus-text.ts';

/** A reading with its time in Unix milliseconds. */
export interface TimedReading {
  readonly at_ms: number;
  readonly reading: Reading;
}

const HISTOGRAMS = [
  ['whole', 'tds_request_seconds'],
  ['platform', 'tds_platform_seconds'],
  ['queue', 'tds_queue_seconds'],
  ['model', 'tds_model_seconds'],
  ['commit', 'tds_commit_seconds'],
  ['event loop lag', 'tds_event_loop_lag_seconds'],
] as const;

/** Returns the lines of a page: the activity between two readings, or since the start for only one. */
export function topPage(now: TimedReading, before: TimedReading | null): readonly string[] {
  const { reading } = now;
  const earlier = before?.reading ?? NOTHING_YET;
  const started_ms = reading.sum('process_start_time_seconds') * MS_PER_S;
  const duration_s = Math.max(0.001, (now.at_ms - (before?.at_ms ?? started_ms)) / MS_PER_S);
  const rate = (name: string) => grown(name, earlier, reading) / duration_s;
  const window = before === null ? 'since the start' : `the last ${Math.round(duration_s)} s`;

  const requests = reading.sum('tds_requests_total');
  const ok = grown('tds_requests_total', earlier, reading, { code: 'ok' }) / duration_s;
  const read = grown('tds_read_tokens_total', earlier, reading);
  const decodes = grown('tds_decodes_total', earlier, reading);
  return [
    titleOf(reading, now.at_ms - started_ms),
    `Memory ${megabytes(reading.sum('process_resident_memory_bytes'))}, of it objects ${megabytes(reading.sum('tds_heap_bytes'))} · processors ${percent(rate('process_cpu_seconds_total'))} · ${window}`,
    '',
    line(
      'Requests',
      `${perSecond(rate('tds_requests_total'))}, of them answered ${perSecond(ok)}; ${whole(requests)} in total`,
    ),
    line('Questions', `${perSecond(rate('tds_questions_total'))} answered`),
    line(
      'Tokens',
      `${perSecond(rate('tds_input_tokens_total'))} charged, ${perSecond(read / duration_s)} read, ${perSecond(rate('tds_reused_tokens_total'))} reused`,
    ),
    line('Batches', `${perSecond(decodes / duration_s)} of ${whole(read / Math.max(1, decodes))} tokens`),
    '',
    `${''.padEnd(16)}${['median', '95 %', '99 %'].map((title) => title.padStart(11)).join('')}`,
    ...HISTOGRAMS.map(
      ([title, name]) =>
        `${title.padEnd(16)}${[0.5, 0.95, 0.99].map((share) => time(quantileOf(name, share, earlier, reading)).padStart(11)).join('')}`,
    ),
    '',
    line(
      'Queue',
      `${whole(reading.sum('tds_model_requests'))} requests at the model, ${whole(reading.sum('tds_queue_plans'))} plans wait, ${whole(reading.sum('tds_model_running_tokens'))} tokens run`,
    ),
    line('Holds', holdsOf(reading)),
    line('Models', modelsOf(reading)),
    line('Refusals', countsOf(refusalsOf(reading))),
    line('Problems', countsOf(reading.by('tds_problems_total', 'step'))),
    line('Audit', auditOf(reading, now.at_ms)),
  ];
}

function titleOf(reading: Reading, up_ms: number): string {
  const [build] = reading.all('tds_build_info');
  return `Typed Decision Service ${build?.labels.version ?? ''} · ${build?.labels.runtime ?? ''} · up ${age(up_ms / MS_PER_S)}`;
}

function holdsOf(reading: Reading): string {
  const open = reading.sum('tds_holds_open');
  if (open === 0) return 'none open';
  return `${whole(open)} open, the oldest for ${time(reading.sum('tds_hold_oldest_seconds'))}; ${whole(reading.sum('tds_holds_unwritten'))} wait to be released`;
}

function modelsOf(reading: Reading): string {
  const states = Map.groupBy(reading.all('tds_model_ready'), ({ labels }) => labels.model ?? '');
  const words = [...states].map(([model, samples]) => {
    const modes = samples.filter(({ value }) => value === 1).map(({ labels }) => labels.mode);
    return `${model} ${modes.length === 0 ? 'not loaded' : `ready (${modes.join(', ')})`}`;
  });
  return words.length === 0 ? 'none' : words.join('; ');
}

function refusalsOf(reading: Reading): ReadonlyMap<string, number> {
  return new Map([...reading.by('tds_requests_total', 'code')].filter(([code]) => code !== 'ok'));
}

/** Returns the counts that are not 0, largest first. */
function countsOf(counts: ReadonlyMap<string, number>): string {
  const words = [...counts]
    .filter(([, count]) => count > 0)
    .sort(([, left], [, right]) => right - left)
    .map(([name, count]) => `${name} ${whole(count)}`);
  return words.length === 0 ? 'none' : words.join(', ');
}

function auditOf(reading: Reading, now_ms: number): string {
  const at_s = reading.sum('tds_audit_timestamp_seconds');
  if (at_s === 0) return 'none yet';
  return `${whole(reading.sum('tds_audit_violations'))} violations, ${age(now_ms / MS_PER_S - at_s)} ago`;
}

function line(title: string, text: string): string {
  return `${title.padEnd(16)}${text}`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function perSecond(value: number): string {
  return `${value >= 100 ? whole(value) : value.toFixed(1)}/s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function megabytes(bytes: number): string {
  return `${whole(bytes / BYTES_PER_MEGABYTE)} MB`;
}

function time(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return `${(seconds * MS_PER_S).toFixed(seconds < 0.01 ? 2 : 0)} ms`;
}

function age(seconds: number): string {
  const minutes = Math.floor(Math.max(0, seconds) / 60);
  if (minutes === 0) return `${Math.floor(Math.max(0, seconds))} s`;
  if (minutes < 120) return `${minutes} min`;
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`;
}
