import { useId } from 'preact/hooks';
import { formatPercent } from '../format.ts';

/** The bounds between which all thresholds decide alike (contract: no yes/no answer is between them). */
const COMMITTED_NO_MAX = 0.2;
const COMMITTED_YES_MIN = 0.8;

/** A threshold from 0 to 1, in steps of a hundredth. */
export function ThresholdSlider({
  label,
  value,
  onChange,
}: {
  readonly label: string;
  readonly value: number;
  readonly onChange: (value: number) => void;
}) {
  const id = useId();
  const is_between = value >= COMMITTED_NO_MAX && value <= COMMITTED_YES_MIN;
  return (
    <div class="threshold-slider">
      <label for={id}>
        Threshold<span class="visually-hidden">: {label}</span>
      </label>
      <input
        id={id}
        type="range"
        min="0"
        max="1"
        step="0.01"
        value={value}
        aria-valuetext={formatPercent(value, 0)}
        title={is_between ? 'From 20% to 80% every threshold decides alike' : undefined}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
      <span class="number">{formatPercent(value, 0)}</span>
    </div>
  );
}
