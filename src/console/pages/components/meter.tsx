import { formatPercent } from '../format.ts';

/** From this share of a limit on, it is nearly reached. */
export const NEAR_SHARE = 0.8;

interface MeterProps {
  readonly label: string;
  readonly value: number;
  /** The whole; null where there is no limit. */
  readonly limit: number | null;
  readonly format: (value: number) => string;
  /** The whole is what is wanted, and no limit. */
  readonly is_goal?: boolean;
  /** Hides the label from the eye only, where the place says what it is. */
  readonly hides_label?: boolean;
}

/** How much of a limit is used: calm, then a warning from 80 %, then full. Or how much of a goal is reached. */
export function Meter({ label, value, limit, format, is_goal = false, hides_label = false }: MeterProps) {
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
  const text = limit === null ? `${format(value)}, no limit` : `${format(value)} of ${format(limit)}`;
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
  /** Marks where the answer turns; null for none. */
  readonly threshold?: number | null;
  /** Whether this is the option that the answer names. */
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
