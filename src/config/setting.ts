import { InvalidArgumentError } from 'commander';
import { DAY_MS, HOUR_MS, MINUTE_MS, MS_PER_S } from '../clock.ts';
import type { TomlKind } from './toml.ts';

/** How a setting is written, and which values it takes. */
export interface Kind<Value> {
  /** What the TOML file holds. */
  readonly toml: TomlKind;
  /** The value of its text. Throws `InvalidArgumentError` with one sentence about what it must be. */
  readonly parse: (text: string) => Value;
}

/** One row of the table of settings: all that flags, environment, TOML file, help and reload know of it. */
export interface Setting<Value = unknown> {
  /** As commander reads it; null where a command line, which other users can read, is no place for the value. */
  readonly flag: string | null;
  readonly variable: `TDS_${string}`;
  /** Where the TOML file has it. */
  readonly key: `${string}.${string}`;
  readonly kind: Kind<Value>;
  /** Undefined where there is no value unless one is given; `help` says what that means. */
  readonly default: Value | undefined;
  /** A value that works, as text, for settings without a default. */
  readonly example?: string;
  readonly help: string;
  readonly unit?: 'seconds' | 'days';
  /** Never printed, and never part of a sentence or a log line. */
  readonly is_secret: boolean;
  /** The text as it may be printed, of a value that may hold a secret beside what is public. */
  readonly public_text?: (text: string) => string;
  /** `applied_while_set`: a new value is applied, but setting it for the first time, or no more, needs a restart. */
  readonly on_reload: 'applied' | 'applied_while_set' | 'restart';
}

type Optional<Row, Name extends keyof Row> = Omit<Row, Name> & Partial<Pick<Row, Name>>;

/** What a row says of itself; a setting is public and needs a restart unless it says otherwise. */
type Row<Value> = Optional<Omit<Setting<Value>, 'kind' | 'default'>, 'is_secret' | 'on_reload'>;

/** What is printed in place of a secret. */
export const MASK = '********';

/** The text of a setting's value as it may be printed and logged. */
export function publicText({ is_secret, public_text }: Setting, text: string): string {
  return is_secret ? MASK : (public_text?.(text) ?? text);
}

/** A setting that always has a value. */
export function setting<Value>(
  kind: Kind<Value>,
  row: Row<Value> & { readonly default: NoInfer<Value> },
): Setting<Value>;
/** A setting that may have none. */
export function setting<Value>(
  kind: Kind<Value>,
  row: Row<Value> & { readonly example: string },
): Setting<Value | undefined>;
export function setting<Value>(
  kind: Kind<Value>,
  row: Row<Value> & { readonly default?: Value },
): Setting<Value | undefined> {
  return { is_secret: false, on_reload: 'restart', ...row, kind, default: row.default };
}

/** Any text but an empty one. */
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

/** On or off; its flag can only turn it on. */
export const SWITCH: Kind<boolean> = {
  toml: 'boolean',
  parse: (text) => {
    const value = SWITCH_WORDS.get(text);
    if (value === undefined) throw new InvalidArgumentError('It must be true or false.');
    return value;
  },
};

/** A text that `parse` takes; it throws `InvalidArgumentError` where it does not. */
export function textOf<Value>(parse: (text: string) => Value): Kind<Value> {
  return { toml: 'string', parse };
}

/** One of a few words. */
export function oneOf<const Choice extends string>(choices: readonly Choice[]): Kind<Choice> {
  return textOf((text) => {
    const choice = choices.find((candidate) => candidate === text);
    if (choice === undefined) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
    return choice;
  });
}

/** A whole number from `least` to `most`. */
export function wholeNumber(least: number, most: number): Kind<number> {
  return { toml: 'integer', parse: wholeNumberBetween(least, most) };
}

/** A parser of whole numbers from `least` to `most`; anything else is an error of usage, with `advice`. */
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

/** A time with its unit, such as `6h`; its value is in milliseconds. */
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
