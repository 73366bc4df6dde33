import { type DateRange, PRESETS, rangeOfAll, rangeOfDays, rangeOfPreset, utcDay } from '../ranges.ts';
import { TextField } from './field.tsx';
import { SegmentedControl } from './tabs.tsx';

/** A picker for a span of time: a preset that ends now, or whole days. */
export function DateRangePicker({
  value,
  has_all = false,
  onChange,
}: {
  readonly value: DateRange;
  /** True if all time can be chosen. */
  readonly has_all?: boolean;
  readonly onChange: (range: DateRange) => void;
}) {
  const choosePreset = (preset: DateRange['preset']) => {
    if (preset === 'all') return onChange(rangeOfAll(Date.now()));
    if (preset !== 'days') return onChange(rangeOfPreset(preset, Date.now()));
    onChange(rangeOfDays(utcDay(value.from_ms), utcDay(value.to_ms)) ?? value);
  };
  const chooseDays = (first: string, last: string) => {
    const range = rangeOfDays(first, last);
    if (range !== null) onChange(range);
  };
  // The end of a range is excluded, so its last day is the one before.
  const first = utcDay(value.from_ms);
  const last = utcDay(value.to_ms - 1);
  return (
    <div class="date-range">
      <SegmentedControl
        label="Time span"
        options={[
          ...PRESETS,
          ...(has_all ? [{ value: 'all', label: 'All' } as const] : []),
          { value: 'days', label: 'Days' },
        ]}
        value={value.preset}
        onChange={choosePreset}
      />
      {value.preset === 'days' && (
        <div class="date-range-days">
          <TextField
            label="First day (UTC)"
            hides_label
            name="first_day"
            type="date"
            value={first}
            max={last}
            onInput={(day) => chooseDays(day, last)}
          />
          <span aria-hidden="true">to</span>
          <TextField
            label="Last day (UTC)"
            hides_label
            name="last_day"
            type="date"
            value={last}
            min={first}
            onInput={(day) => chooseDays(first, day)}
          />
        </div>
      )}
    </div>
  );
}
