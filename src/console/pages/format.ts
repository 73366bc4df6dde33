import { CENT_MICROS, formatDollars } from '../../contract/money.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../time/clock.ts';

const LOCALE = 'en-US';

/**
 * Caches formatters, because making one takes longer than a hundred uses, and a table has hundreds of cells.
 */
function kept<Options extends object, Format>(
  make: (options: Options) => Format,
): (options: Options) => Format {
  const made = new Map<string, Format>();
  return (options) => {
    const key = JSON.stringify(options);
    const format = made.get(key) ?? make(options);
    made.set(key, format);
    return format;
  };
}

const numberFormat = kept((options: Intl.NumberFormatOptions) => new Intl.NumberFormat(LOCALE, options));
const timeFormat = kept((options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(LOCALE, options));

/** Returns exact dollars: two decimals for whole cents, else six: `$12.50`, `$0.000150`, `-$3.00`. */
export function formatMoney(amount_micros: number): string {
  return amount_micros % CENT_MICROS === 0
    ? `${amount_micros < 0 ? '-' : ''}${formatMoneyShort(Math.abs(amount_micros))}`
    : formatCost(amount_micros);
}

/** Returns the cost of one request, with the contract's six decimals: `$0.000150`. */
export function formatCost(cost_micros: number): string {
  const [whole = '0', fraction = ''] = formatDollars(Math.abs(cost_micros)).split('.');
  return `${cost_micros < 0 ? '-' : ''}$${formatNumber(Number(whole))}.${fraction.padEnd(6, '0')}`;
}

/** Returns dollars with two decimals, for figures of many requests; less than a cent is not nothing: `<$0.01`. */
export function formatMoneyShort(amount_micros: number): string {
  if (amount_micros !== 0 && Math.abs(amount_micros) < CENT_MICROS)
    return amount_micros < 0 ? '-<$0.01' : '<$0.01';
  return numberFormat({ style: 'currency', currency: 'USD' }).format(amount_micros / 1_000_000);
}

/** Returns dollars for the axes of charts: whole cents from one dollar on, three significant digits below. */
export function formatMoneyTick(amount_micros: number): string {
  const dollars = amount_micros / 1_000_000;
  const style = { style: 'currency', currency: 'USD' } as const;
  const digits =
    Math.abs(dollars) >= 1 || dollars === 0
      ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
      : { minimumFractionDigits: 2, maximumFractionDigits: 6, maximumSignificantDigits: 3 };
  return numberFormat({ ...style, ...digits }).format(dollars);
}

/** Returns a number with separators between thousands: `12,345`. */
export function formatNumber(value: number, decimals_max = 0): string {
  return numberFormat({ maximumFractionDigits: decimals_max }).format(value);
}

/** Returns a number in few characters, for axes and tiles: `1.2K`. */
export function formatCompact(value: number): string {
  return numberFormat({ notation: 'compact', maximumFractionDigits: 1 }).format(value);
}

/** Returns a share from 0 to 1 in percent: `12.5%`. */
export function formatPercent(share: number, decimals = 1): string {
  return numberFormat({
    style: 'percent',
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(share);
}

/** Returns a duration: `85 ms`, `1.25 s`, `3 min`, `2 h`, `5 d`. */
export function formatDuration(duration_ms: number): string {
  if (duration_ms < 1_000) return `${formatNumber(duration_ms, duration_ms < 10 ? 1 : 0)} ms`;
  if (duration_ms < MINUTE_MS) return `${formatNumber(duration_ms / 1_000, 2)} s`;
  if (duration_ms < HOUR_MS) return `${formatNumber(duration_ms / MINUTE_MS)} min`;
  if (duration_ms < 2 * DAY_MS) return `${formatNumber(duration_ms / HOUR_MS)} h`;
  return `${formatNumber(duration_ms / DAY_MS)} d`;
}

/** A time as people say it: `just now`, `5 minutes ago`, `in 2 days`; a date from 30 days on. */
export function formatRelative(time_ms: number, now_ms: number, time_zone?: string): string {
  const distance_ms = time_ms - now_ms;
  const magnitude_ms = Math.abs(distance_ms);
  const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' });
  if (magnitude_ms < MINUTE_MS) return 'just now';
  if (magnitude_ms < HOUR_MS) return relative.format(Math.trunc(distance_ms / MINUTE_MS), 'minute');
  if (magnitude_ms < DAY_MS) return relative.format(Math.trunc(distance_ms / HOUR_MS), 'hour');
  if (magnitude_ms < 30 * DAY_MS) return relative.format(Math.trunc(distance_ms / DAY_MS), 'day');
  return formatDate(time_ms, time_zone);
}

/** Returns a day: `Mar 5, 2026`, in the reader's time zone or the given one. */
export function formatDate(time_ms: number, time_zone?: string): string {
  return timeFormat({
    dateStyle: 'medium',
    timeZone: time_zone,
  }).format(time_ms);
}

const TO_THE_SECOND = {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const satisfies Intl.DateTimeFormatOptions;

/** Returns a time to the second, with its zone: `Mar 5, 2026, 14:03:07 GMT+1`. */
export function formatExact(time_ms: number, time_zone?: string): string {
  return timeFormat({
    year: 'numeric',
    ...TO_THE_SECOND,
    timeZoneName: 'short',
    timeZone: time_zone,
  }).format(time_ms);
}

/** Returns a time to the second without its year, for tables: `Mar 5, 14:03:07`. */
export function formatMoment(time_ms: number, time_zone?: string): string {
  return timeFormat({
    ...TO_THE_SECOND,
    timeZone: time_zone,
  }).format(time_ms);
}

/**
 * Returns the labels of a chart's times: days, or the time of day with the day below it where that is another one.
 * `step_ms` is the distance between them.
 */
export function formatTicks(
  times_ms: readonly number[],
  step_ms: number,
  time_zone?: string,
): readonly string[] {
  const day = timeFormat({ month: 'short', day: 'numeric', timeZone: time_zone });
  const second = step_ms < MINUTE_MS ? ({ second: '2-digit' } as const) : {};
  const time = timeFormat({
    hour: '2-digit',
    minute: '2-digit',
    ...second,
    hourCycle: 'h23',
    timeZone: time_zone,
  });
  let last = '';
  return times_ms.map((time_ms) => {
    const day_text = day.format(time_ms);
    const is_other = day_text !== last;
    last = day_text;
    if (step_ms >= DAY_MS) return day_text;
    return is_other ? `${time.format(time_ms)}\n${day_text}` : time.format(time_ms);
  });
}

/** Returns bytes with their unit: `512 B`, `1.2 kB`, `3.4 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000
    ? `${formatNumber(bytes / 1_000, 1)} kB`
    : `${formatNumber(bytes / 1_000_000, 1)} MB`;
}

/** Returns a number with its noun: `1 key`, `2 keys`. */
export function formatCount(count: number, singular: string, plural = `${singular}s`): string {
  return `${formatNumber(count)} ${count === 1 ? singular : plural}`;
}
