import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { useForm } from './form.tsx';
import { Icon } from './icon.tsx';

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly help?: ComponentChildren;
  /** The page's own error; the server's errors come from the form around the field. */
  readonly error?: string | undefined;
  readonly is_required?: boolean;
  readonly is_disabled?: boolean;
  /** Hides the label visually, where its position makes it clear. */
  readonly hides_label?: boolean;
}

/** The attributes that link an input to its label, help and error. */
interface Described {
  readonly id: string;
  readonly name: string;
  readonly required: boolean;
  readonly disabled: boolean;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': 'true' | undefined;
}

function Frame({
  field,
  children,
}: {
  readonly field: FieldProps;
  readonly children: (described: Described) => ComponentChildren;
}) {
  const id = useId();
  const form = useForm();
  const error = field.error ?? form.errorOf(field.name);
  const described_by = [
    ...(field.help === undefined ? [] : [`${id}-help`]),
    ...(error === undefined ? [] : [`${id}-error`]),
  ];
  return (
    <div class="field">
      <label for={id} class={field.hides_label ? 'visually-hidden' : undefined}>
        {field.label}
      </label>
      {children({
        id,
        name: field.name,
        required: field.is_required ?? false,
        disabled: field.is_disabled ?? false,
        'aria-describedby': described_by.length === 0 ? undefined : described_by.join(' '),
        'aria-invalid': error === undefined ? undefined : 'true',
      })}
      {field.help !== undefined && (
        <p id={`${id}-help`} class="help">
          {field.help}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} class="field-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

/** One object for each type, because Preact's types of an input depend on it. */
const TYPES = {
  text: { type: 'text' },
  email: { type: 'email' },
  password: { type: 'password' },
  search: { type: 'search' },
  number: { type: 'number' },
  date: { type: 'date' },
} as const;

/**
 * Returns the value of a field that the page controls, or the first value of one that the form controls. On
 * every render, Preact overwrites entered text with a plain `value`.
 */
function valueProps(value: string | undefined, onInput: ((value: string) => void) | undefined) {
  if (value === undefined) return {};
  return onInput === undefined ? { defaultValue: value } : { value };
}

interface TextFieldProps extends FieldProps {
  readonly type?: keyof typeof TYPES;
  /** The content; without `onInput` only the first one. */
  readonly value?: string;
  readonly placeholder?: string;
  readonly autocomplete?: string;
  readonly length_min?: number;
  readonly length_max?: number;
  readonly min?: string;
  readonly max?: string;
  readonly inputmode?: 'decimal' | 'numeric' | 'email' | 'text';
  /** The text before the value, such as `$`. */
  readonly prefix?: string;
  readonly onInput?: (value: string) => void;
  /** Called when the focus leaves it. */
  readonly onLeave?: () => void;
}

/** A shown password is still none that a browser may capitalize, or send to a service that checks its spelling. */
const PASSWORD_PROPS = { spellcheck: false, autocapitalize: 'none' } as const;

function frameClass(has_prefix: boolean, has_button: boolean): string {
  return `input-frame${has_prefix ? ' has-prefix' : ''}${has_button ? ' has-button' : ''}`;
}

/** Shows the password of a field, or hides it again. */
function ShowButton({
  of,
  is_shown,
  onPress,
}: {
  readonly of: string;
  readonly is_shown: boolean;
  readonly onPress: () => void;
}) {
  return (
    <button
      type="button"
      class="show-button"
      aria-controls={of}
      aria-pressed={is_shown}
      title={is_shown ? 'Hide' : 'Show'}
      onClick={onPress}
    >
      <Icon name={is_shown ? 'eye-off' : 'eye'} />
      <span class="visually-hidden">Show</span>
    </button>
  );
}

/** A field of one line. */
export function TextField({
  type = 'text',
  value,
  placeholder,
  autocomplete,
  length_min,
  length_max,
  min,
  max,
  inputmode,
  prefix,
  onInput,
  onLeave,
  ...field
}: TextFieldProps) {
  const [is_shown, setShown] = useState(false);
  const is_password = type === 'password';
  return (
    <Frame field={field}>
      {(described) => (
        <span class={frameClass(prefix !== undefined, is_password)}>
          {prefix !== undefined && (
            <span class="input-prefix" aria-hidden="true">
              {prefix}
            </span>
          )}
          <input
            {...described}
            {...TYPES[is_shown ? 'text' : type]}
            {...valueProps(value, onInput)}
            placeholder={placeholder}
            autocomplete={autocomplete}
            minLength={length_min}
            maxLength={length_max}
            min={min}
            max={max}
            inputMode={inputmode}
            {...(is_password ? PASSWORD_PROPS : {})}
            onInput={(event) => onInput?.(event.currentTarget.value)}
            onBlur={() => onLeave?.()}
          />
          {is_password && (
            <ShowButton of={described.id} is_shown={is_shown} onPress={() => setShown(!is_shown)} />
          )}
        </span>
      )}
    </Frame>
  );
}

/**
 * The name of what the reader makes or owns. The service tells one that is too long: a browser would cut it off, without a
 * word, by its UTF-16 code units.
 */
export function NameField(props: Pick<TextFieldProps, 'value' | 'help' | 'autocomplete' | 'is_required'>) {
  return <TextField label="Name" name="name" autocomplete="off" is_required {...props} />;
}

interface TextAreaProps extends FieldProps {
  readonly value?: string;
  readonly placeholder?: string;
  readonly rows?: number;
  /** True for code and records: monospaced, without spell checking. */
  readonly is_code?: boolean;
  readonly onInput?: (value: string) => void;
}

/** A field of several lines. */
export function TextArea({
  value,
  placeholder,
  rows = 4,
  is_code = false,
  onInput,
  ...field
}: TextAreaProps) {
  return (
    <Frame field={field}>
      {(described) => (
        <textarea
          {...described}
          {...valueProps(value, onInput)}
          class={is_code ? 'code' : undefined}
          rows={rows}
          placeholder={placeholder}
          spellcheck={!is_code}
          onInput={(event) => onInput?.(event.currentTarget.value)}
        />
      )}
    </Frame>
  );
}

export interface Option<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
  readonly is_disabled?: boolean;
}

interface SelectProps<Value extends string> extends FieldProps {
  readonly options: readonly Option<Value>[];
  readonly value?: Value;
  readonly onChange?: (value: Value) => void;
}

/** A choice from a list, as the browser draws it. */
export function Select<Value extends string>({ options, value, onChange, ...field }: SelectProps<Value>) {
  return (
    <Frame field={field}>
      {(described) => (
        <select
          {...described}
          {...(value === undefined || onChange === undefined ? {} : { value })}
          onChange={(event) => {
            const chosen = options.find((option) => option.value === event.currentTarget.value);
            if (chosen !== undefined) onChange?.(chosen.value);
          }}
        >
          {options.map((option) => (
            <option
              key={option.value}
              value={option.value}
              selected={option.value === value}
              disabled={option.is_disabled ?? false}
            >
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Frame>
  );
}

interface CheckboxProps {
  readonly label: ComponentChildren;
  readonly name: string;
  readonly is_checked?: boolean;
  readonly is_disabled?: boolean;
  readonly onChange?: (is_checked: boolean) => void;
}

/** A choice of yes or no. */
export function Checkbox({ label, name, is_checked, is_disabled = false, onChange }: CheckboxProps) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        name={name}
        disabled={is_disabled}
        {...(is_checked === undefined ? {} : { checked: is_checked })}
        onChange={(event) => onChange?.(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
