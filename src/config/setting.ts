import { InvalidArgumentError } from 'commander';
import { DAY_MS, HOUR_MS, MINUTE_MS, MS_PER_S } from '../time/clock.ts';
import type { TomlKind } from './toml.ts';

/** The syntax of a setting, and its valid values. */
export interface Kind<Value> {
  /** The type in the TOML file. */
  readonly toml: TomlKind;
  /** A word that may stand for a number; the TOML file has it as a text. */
  readonly word?: string;
  /** Parses its text. Throws `InvalidArgumentError` with one sentence about the valid values. */
  readonly parse: (text: string) => Value;
}

/** One row of the table of settings: the single source for flags, environment, TOML file, help and reload. */
export interface Setting<Value = unknown> {
  /**
   * The flag in commander's syntax. Null for values that must not be on a command line, because other users
   * can read it.
   */
  readonly flag: string | null;
  readonly variable: `TDS_${string}`;
  /** The key in the TOML file. */
  readonly key: `${string}.${string}`;
  readonly kind: Kind<Value>;
  /** Undefined where there is no default; `help` explains the effect. */
  readonly default: Value | undefined;
  /** A working value, as text, for settings without a default. */
  readonly example?: string;
  readonly help: string;
  readonly unit?: 'seconds' | 'days';
  /** True for a value that is never printed, and never part of a sentence or a log line. */
  readonly is_secret: boolean;
  /** Returns the printable text of a value that may contain a secret. */
  readonly public_text?: (text: string) => string;
  /**
   * `applied_while_set`: a new value is applied, but setting the first one, or removing it, needs a restart.
   */
  readonly on_reload: 'applied' | 'applied_while_set' | 'restart';
}

type Optional<Row, Name extends keyof Row> = Omit<Row, Name> & Partial<Pick<Row, Name>>;

type OnReload = Setting['on_reload'];

/** The fields of a row; by default a setting is public and needs a restart. */
type Row<Value, Reload extends OnReload> = Optional<
  Omit<Setting<Value>, 'kind' | 'default' | 'on_reload'>,
  'is_secret'
> & { readonly on_reload?: Reload };

/** A setting whose type says what a reload does with it. */
type Reloaded<Value, Reload extends OnReload> = Setting<Value> & { readonly on_reload: NoInfer<Reload> };

/** The replacement of a secret in print. */
export const MASK = '********';

/** Returns the text of a setting's value for print and logs. */
export function publicText({ is_secret, public_text }: Setting, text: string): string {
  return is_secret ? MASK : (public_text?.(text) ?? text);
}

/** Returns a setting that always has a value. */
export function setting<Value, Reload extends OnReload = 'restart'>(
  kind: Kind<Value>,
  row: Row<Value, Reload> & { readonly default: NoInfer<Value> },
): Reloaded<Value, Reload>;
/** Returns a setting that may have no value. */
export function setting<Value, Reload extends OnReload = 'restart'>(
  kind: Kind<Value>,
  row: Row<Value, Reload> & { readonly example: string },
): Reloaded<Value | undefined, Reload>;
export function setting<Value>(
  kind: Kind<Value>,
  row: Row<Value, OnReload> & { readonly default?: Value },
): Setting<Value | undefined> {
  return { is_secret: false, on_reload: 'restart', ...row, kind, default: row.default };
}

/** Any non-empty text. */
export const TEXT: Kind<string> = {
  toml: 'string',
  parse: (text) => {
    if (text === '') throw new InvalidArgumentError('It must not be empty.');
    return text;
  },
};

const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['on', true],
  ['1', true],
  ['false', false],
  ['off', false],
  ['0', false],
]);

/** On or off; the flag can only turn it on. */
export const SWITCH: Kind<boolean> = {
  toml: 'boolean',
  parse: (text) => {
    const value = SWITCH_WORDS.get(text);
    if (value === undefined) throw new InvalidArgumentError('It must be true or false.');
    return value;
  },
};

/** Returns the kind of texts that `parse` accepts; it throws `InvalidArgumentError` for others. */
export function textOf<Value>(parse: (text: string) => Value): Kind<Value> {
  return { toml: 'string', parse };
}

/** Returns the kind with these words as its values. */
export function oneOf<const Choice extends string>(choices: readonly Choice[]): Kind<Choice> {
  return textOf((text) => {
    const choice = choices.find((candidate) => candidate === text);
    if (choice === undefined) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
    return choice;
  });
}

/** Returns the kind of whole numbers from `least` to `most`. */
export function wholeNumber(least: number, most: number): Kind<number> {
  return { toml: 'integer', parse: wholeNumberBetween(least, most) };
}

/** Returns the kind of whole numbers from `least` to `most`, and that word. */
export function wholeNumberOr<const Word extends string>(
  word: Word,
  least: number,
  most: number,
): Kind<number | Word> {
  const parse = wholeNumberBetween(
    least,
    most,
    `It must be ${word}, or a whole number from ${least} to ${most}.`,
  );
  return { toml: 'integer', word, parse: (text) => (text === word ? word : parse(text)) };
}

/**
 * Returns a parser of whole numbers from `least` to `most`; anything else is a usage error, with `advice`.
 */
export function wholeNumberBetween(
  least: number,
  most: number,
  advice = `It must be a whole number from ${least} to ${most}.`,
): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(advice);
  };
}

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', MS_PER_S],
  ['m', MINUTE_MS],
  ['h', HOUR_MS],
  ['d', DAY_MS],
]);

/** A duration with its unit, such as `6h`, in milliseconds. */
export const DURATION: Kind<number> = {
  toml: 'string',
  parse: (text) => {
    const [, digits = '', unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
    const unit_ms = UNITS_MS.get(unit);
    if (unit_ms === undefined) {
      throw new InvalidArgumentError('It must be a number and a unit, such as 6h, 30m or 1d.');
    }
    return Number(digits) * unit_ms;
  },
};
