import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Option } from './field.tsx';

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly options: readonly Option<Value>[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}

/** A choice of a few visible options: radio buttons in the shape of a bar. */
export function SegmentedControl<Value extends string>({
  label,
  options,
  value,
  onChange,
}: ChoiceProps<Value>) {
  const name = useId();
  return (
    <fieldset class="segmented">
      <legend class="visually-hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            class="visually-hidden"
            name={name}
            checked={option.value === value}
            disabled={option.is_disabled ?? false}
            onChange={() => onChange(option.value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** Parts of a page, of which one is shown. Arrow keys go from tab to tab. */
export function Tabs<Value extends string>({
  label,
  options,
  value,
  onChange,
  children,
}: ChoiceProps<Value> & { readonly children: ComponentChildren }) {
  const id = useId();
  const at = options.findIndex((option) => option.value === value);
  const choose = (index: number) => {
    const chosen = options[(index + options.length) % options.length];
    if (chosen === undefined) return;
    onChange(chosen.value);
    document.getElementById(`${id}-${chosen.value}`)?.focus();
  };
  return (
    <div>
      <div
        role="tablist"
        class="tabs"
        aria-label={label}
        onKeyDown={(event) => {
          const steps: Readonly<Record<string, number>> = { ArrowLeft: at - 1, ArrowRight: at + 1 };
          const next = event.key === 'Home' ? 0 : event.key === 'End' ? options.length - 1 : steps[event.key];
          if (next === undefined) return;
          event.preventDefault();
          choose(next);
        }}
      >
        {options.map((option) => (
          <button
            key={option.value}
            type="button"
            role="tab"
            id={`${id}-${option.value}`}
            aria-selected={option.value === value}
            aria-controls={`${id}-panel`}
            tabIndex={option.value === value ? 0 : -1}
            onClick={() => onChange(option.value)}
          >
            {option.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>
        {children}
      </div>
    </div>
  );
}
