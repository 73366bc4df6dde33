import { formatPercent } from '../format.ts';

/** The share of a limit from which it is nearly reached. */
export const NEAR_SHARE = 0.8;

interface MeterProps {
  readonly label: string;
  readonly value: number;
  /** The whole; null where there is no limit. */
  readonly limit: number | null;
  readonly format: (value: number) => string;
  /** The form of the limit, where it is another than that of the value. */
  readonly formatLimit?: (limit: number) => string;
  /** True if the whole is a goal instead of a limit. */
  readonly is_goal?: boolean;
  /** Hides the label visually, where its position makes it clear. */
  readonly hides_label?: boolean;
}

/**
 * A meter of the used part of a limit: calm, then a warning from 80 %, then full. Or of the reached part of a
 * goal.
 */
export function Meter({
  label,
  value,
  limit,
  format,
  formatLimit = format,
  is_goal = false,
  hides_label = false,
}: MeterProps) {
  const share = limit === null ? 0 : limit === 0 ? 1 : Math.min(1, value / limit);
  const tone = is_goal
    ? share >= 1
      ? 'success'
      : 'calm'
    : share >= 1
      ? 'danger'
      : share >= NEAR_SHARE
        ? 'warning'
        : 'calm';
  const text = limit === null ? `${format(value)}, no limit` : `${format(value)} of ${formatLimit(limit)}`;
  return (
    <div class="meter">
      <div class="meter-text">
        <span class={hides_label ? 'visually-hidden' : undefined}>{label}</span>
        <span class="number">{text}</span>
      </div>
      {limit !== null && (
        <div class="meter-track" aria-hidden="true">
          <div class={`meter-fill ${tone}`} style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </div>
  );
}

interface ProbabilityBarProps {
  readonly label: string;
  /** 0 to 1. */
  readonly probability: number;
  /** The probability at which the answer changes, which is marked; null for none. */
  readonly threshold?: number | null;
  /** True if the answer names this option. */
  readonly is_answer?: boolean;
}

/** One option of an answer with its probability. */
export function ProbabilityBar({
  label,
  probability,
  threshold = null,
  is_answer = false,
}: ProbabilityBarProps) {
  return (
    <div class={is_answer ? 'probability is-answer' : 'probability'}>
      <span class="probability-label">
        {label}
        {is_answer && <span class="visually-hidden"> (the answer)</span>}
      </span>
      <span class="probability-track" aria-hidden="true">
        <span class="probability-fill" style={{ width: `${probability * 100}%` }} />
        {threshold !== null && <span class="probability-threshold" style={{ left: `${threshold * 100}%` }} />}
      </span>
      <span class="number">{formatPercent(probability)}</span>
      {threshold !== null && <span class="visually-hidden">threshold {formatPercent(threshold, 0)}</span>}
    </div>
  );
}
