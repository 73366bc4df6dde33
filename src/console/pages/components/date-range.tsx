import { useEffect, useState } from 'preact/hooks';
import { dayOf } from '../../../time/days.ts';
import { type DateRange, PRESETS, rangeOfAll, rangeOfDays, rangeOfPreset } from '../ranges.ts';
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
    onChange(rangeOfDays(dayOf(value.from_ms), dayOf(value.to_ms)) ?? value);
  };
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
      {value.preset === 'days' && <Days value={value} onChange={onChange} />}
    </div>
  );
}

/** The first and the last day. Entered text that is no span stays, with the reason beside it once its field is left. */
function Days({
  value,
  onChange,
}: {
  readonly value: DateRange;
  readonly onChange: (range: DateRange) => void;
}) {
  // The end of a range is excluded, so its last day is the one before.
  const [first, last] = [dayOf(value.from_ms), dayOf(value.to_ms - 1)];
  const [entered, setEntered] = useState({ first, last });
  const [is_left, setLeft] = useState(false);
  useEffect(() => setEntered({ first, last }), [first, last]);
  const enter = (change: Partial<typeof entered>) => {
    const days = { ...entered, ...change };
    setEntered(days);
    setLeft(false);
    // Between the digits of a year there are days of other millennia, which are none of a range.
    const range = rangeOfDays(days.first, days.last);
    if (range !== null) onChange(range);
  };
  const wrong = is_left ? wrongDay(entered) : null;
  const field = { type: 'date', hides_label: true, onLeave: () => setLeft(true) } as const;
  return (
    <div class="date-range-days">
      <TextField
        {...field}
        label="First day (UTC)"
        name="first_day"
        value={entered.first}
        max={entered.last}
        error={wrong?.day === 'first' ? wrong.error : undefined}
        onInput={(day) => enter({ first: day })}
      />
      <span aria-hidden="true">to</span>
      <TextField
        {...field}
        label="Last day (UTC)"
        name="last_day"
        value={entered.last}
        min={entered.first}
        error={wrong?.day === 'last' ? wrong.error : undefined}
        onInput={(day) => enter({ last: day })}
      />
    </div>
  );
}

/** Returns which of two days is none of a range, and why; null where both are. */
function wrongDay({ first, last }: { readonly first: string; readonly last: string }) {
  const error = 'Enter a day from 1970 on.';
  if (rangeOfDays(first, first) === null) return { day: 'first', error } as const;
  if (rangeOfDays(last, last) === null) return { day: 'last', error } as const;
  return first <= last ? null : ({ day: 'first', error: 'The first day is after the last.' } as const);
}
