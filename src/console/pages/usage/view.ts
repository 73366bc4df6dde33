import { isMode, type Mode } from '../../../questions/types-and-modes.ts';
import { GROUPINGS, type Grouping } from '../../../store/groupings.ts';
import { MINUTE_MS } from '../../../time/clock.ts';
import { dayOf } from '../../../time/days.ts';
import {
  type DateRange,
  isSpan,
  PRESETS,
  type Preset,
  rangeOfAll,
  rangeOfDays,
  rangeOfPreset,
} from '../ranges.ts';

const SPAN_DEFAULT: Preset = 'week';
const GROUP_DEFAULT: Grouping = 'status';

/** The sums that the large chart can show. */
export const MEASURES = ['requests', 'cost_micros', 'input_tokens'] as const;

export type Measure = (typeof MEASURES)[number];

const MEASURE_DEFAULT: Measure = 'requests';

/** A span of time, its end excluded. */
export interface Zoom {
  readonly from_ms: number;
  readonly to_ms: number;
}

/** The shown part of the usage. All of it is in the address, so that a link shows the same. */
export interface UsageView {
  /** A preset that ends now, or the first and last UTC day as `2026-01-01..2026-01-31`. */
  readonly span: string;
  /** The zoomed part of the span. */
  readonly zoom: Zoom | null;
  readonly project_id: string | null;
  readonly api_key_id: string | null;
  readonly model: string | null;
  readonly mode: Mode | null;
  readonly status: number | null;
  /** The one request to look up, regardless of the rest of the view. */
  readonly request_id: string | null;
  readonly group_by: Grouping;
  readonly measure: Measure;
  /** True to show the span whole, also where all requests are in a small part of it. */
  readonly is_whole: boolean;
}

/** The requests, as the API's query; a missing field does not filter. */
export interface UsageQuery {
  readonly from_ms?: number;
  readonly to_ms?: number;
  readonly project_id?: string;
  readonly api_key_id?: string;
  readonly model?: string;
  readonly mode?: Mode;
  readonly status?: number;
  readonly request_id?: string;
}

/** Returns the view of an address. Invalid fields are ignored. */
export function viewOf(address: URLSearchParams): UsageView {
  const span = address.get('span') ?? SPAN_DEFAULT;
  const mode = address.get('mode');
  const status = Number(address.get('status'));
  return {
    span: span === 'all' || isPreset(span) || daysOf(span) !== null ? span : SPAN_DEFAULT,
    zoom: zoomOf(Date.parse(address.get('from') ?? ''), Date.parse(address.get('to') ?? '')),
    project_id: address.get('project'),
    api_key_id: address.get('key'),
    model: address.get('model'),
    mode: isMode(mode) ? mode : null,
    status: Number.isInteger(status) && status >= 100 && status <= 599 ? status : null,
    request_id: address.get('request'),
    group_by: GROUPINGS.find((grouping) => grouping === address.get('group')) ?? GROUP_DEFAULT,
    measure: MEASURES.find((measure) => measure === address.get('measure')) ?? MEASURE_DEFAULT,
    is_whole: address.has('whole'),
  };
}

/** Returns the fields of a view's address; null for defaults. */
export function addressOf(view: UsageView): Readonly<Record<string, string | null>> {
  return {
    span: view.span === SPAN_DEFAULT ? null : view.span,
    from: view.zoom === null ? null : new Date(view.zoom.from_ms).toISOString(),
    to: view.zoom === null ? null : new Date(view.zoom.to_ms).toISOString(),
    project: view.project_id,
    key: view.api_key_id,
    model: view.model,
    mode: view.mode,
    status: view.status === null ? null : String(view.status),
    request: view.request_id,
    group: view.group_by === GROUP_DEFAULT ? null : view.group_by,
    measure: view.measure === MEASURE_DEFAULT ? null : view.measure,
    whole: view.is_whole ? 'true' : null,
  };
}

/**
 * Returns the times of the view's span without its zoom. The span `all` begins where the loaded series does, and at the
 * time 0 before one is loaded.
 */
export function rangeOf(
  { span }: Pick<UsageView, 'span'>,
  now_ms: number,
  loaded?: Pick<Zoom, 'from_ms'>,
): DateRange {
  if (span === 'all') return { ...rangeOfAll(now_ms), from_ms: loaded?.from_ms ?? 0 };
  return isPreset(span) ? rangeOfPreset(span, now_ms) : (daysOf(span) ?? rangeOfPreset(SPAN_DEFAULT, now_ms));
}

/** Returns true if a chart shows less than the times that were asked for. */
export function isPartOf(shown: Zoom, asked: Zoom): boolean {
  return shown.to_ms < asked.to_ms || shown.from_ms > asked.from_ms;
}

/** Returns the text of a range in the address. */
export function spanOf({ preset, from_ms, to_ms }: DateRange): string {
  return preset === 'days' ? `${dayOf(from_ms)}..${dayOf(to_ms - 1)}` : preset;
}

/** Returns the API's query: one request by its id, or those of a time and the filters. */
export function queryOf(view: UsageView, now_ms: number): UsageQuery {
  const { project_id, api_key_id, model, mode, status, request_id } = view;
  if (request_id !== null) return { request_id };
  return {
    ...timesOf(view, now_ms),
    ...(project_id === null ? {} : { project_id }),
    ...(api_key_id === null ? {} : { api_key_id }),
    ...(model === null ? {} : { model }),
    ...(mode === null ? {} : { mode }),
    ...(status === null ? {} : { status }),
  };
}

/** Returns the times of the API's query; without a beginning it is the first day with usage. */
export function timesOf(
  { span, zoom }: Pick<UsageView, 'span' | 'zoom'>,
  now_ms: number,
): Pick<UsageQuery, 'from_ms' | 'to_ms'> {
  if (zoom !== null) return zoom;
  const { from_ms, to_ms } = rangeOf({ span }, now_ms);
  return span === 'all' ? { to_ms } : { from_ms, to_ms };
}

/** Returns true if the view has a filter besides its time. */
export function isFiltered(view: UsageView): boolean {
  const { project_id, api_key_id, model, mode, status } = view;
  return [project_id, api_key_id, model, mode, status].some((field) => field !== null);
}

/** Returns a dragged part of a chart, in whole minutes. */
export function zoomTo({ from_ms, to_ms }: Zoom): Zoom {
  const first_ms = Math.max(0, Math.floor(from_ms / MINUTE_MS) * MINUTE_MS);
  return {
    from_ms: first_ms,
    to_ms: Math.max(first_ms + MINUTE_MS, Math.ceil(to_ms / MINUTE_MS) * MINUTE_MS),
  };
}

/** Returns the name of a view's span, within a sentence. */
export function spanName({ span }: Pick<UsageView, 'span'>): string {
  const preset = PRESETS.find(({ value }) => value === span);
  if (preset !== undefined) return preset.label;
  return span === 'all' ? 'all time' : 'the chosen days';
}

function isPreset(span: string): span is Preset {
  return PRESETS.some(({ value }) => value === span);
}

function daysOf(span: string): DateRange | null {
  const [first = '', last = ''] = span.split('..');
  return rangeOfDays(first, last);
}

function zoomOf(from_ms: number, to_ms: number): Zoom | null {
  return isSpan({ from_ms, to_ms }) ? { from_ms, to_ms } : null;
}
