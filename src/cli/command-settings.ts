import { type Command, Option } from 'commander';
import { contradiction } from '../config/combinations.ts';
import { type ConfigFile, DEFAULT_CONFIG_FILE, readConfigFile, wrongText } from '../config/config-file.ts';
import { ConfigurationRefused } from '../config/configuration-refused.ts';
import {
  CONFIG_VARIABLE,
  type Effective,
  effectiveSettings,
  shadowedSettings,
  unknownVariables,
} from '../config/effective.ts';
import { type Setting, SWITCH } from '../config/setting.ts';
import { type SettingName, settingOf } from '../config/settings.ts';
import { WrongSettings } from './command-failed.ts';

/** The settings of a command, as they were read. */
export interface ReadSettings {
  readonly effective: readonly Effective[];
  /** The file that was read; null for none. */
  readonly config_file: string | null;
  /** Why a file was refused that the command does without (`allowRefusedFile`); null where none was. */
  readonly file_refusal: string | null;
  /** Warnings for the operator. */
  readonly warnings: readonly string[];
}

const names_of = new WeakMap<Command, readonly SettingName[]>();
const read_of = new WeakMap<Command, ReadSettings>();
const without_refused_file = new WeakSet<Command>();
const flags_of = new WeakMap<Command, ReadonlyMap<SettingName, string>>();

/**
 * Gives a command these settings: their flags, and `--config`. Before its action runs, `applySettings` puts
 * the values into its options, under the settings' names.
 */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  const before = names_of.get(command) ?? [];
  names_of.set(command, [...before, ...names]);
  for (const name of names) {
    const { flag } = settingOf(name);
    if (flag !== null) command.addOption(optionOf(settingOf(name), flag, command));
  }
  if (before.length === 0) {
    command.option(
      '--config <file>',
      `TOML file of settings, which the environment and flags go before; "none" for none (default: ${DEFAULT_CONFIG_FILE} if it is there, env: ${CONFIG_VARIABLE})`,
    );
  }
  const isFlagless = (name: SettingName) => settingOf(name).flag === null;
  // The help is added once, for all settings that the command has by then.
  if (!names.some(isFlagless) || before.some(isFlagless)) return command;
  return command.addHelpText('after', () =>
    flaglessHelp((names_of.get(command) ?? []).filter(isFlagless).map(settingOf)),
  );
}

/** Lets a command go on without the file where it is refused: it may not fail for another program's settings. */
export function allowRefusedFile(command: Command): Command {
  without_refused_file.add(command);
  return command;
}

/** The error of contradicting settings. */
class SettingsContradict extends ConfigurationRefused {
  constructor(
    readonly names: readonly SettingName[],
    sentence: string,
  ) {
    super(sentence);
  }
}

/** Returns an option that reads a flag as text; its value takes effect only after all sources were read. */
function optionOf(setting: Setting, flag: string, command: Command): Option {
  const { help, variable, key, kind, public_text } = setting;
  const value = setting.kind === SWITCH ? undefined : setting.default;
  const start = value === undefined ? '' : `default: ${JSON.stringify(value)}, `;
  const option = new Option(flag, `${help} (${start}env: ${variable}, file: ${key})`);
  if (kind === SWITCH) return option;
  return option.argParser((text) => {
    // Commander's own sentence would quote a value that may contain a secret.
    const wrong = public_text === undefined ? null : wrongText(setting, text);
    if (wrong !== null) command.error(`error: option '${flag}' ${wrong}`);
    kind.parse(text);
    return text;
  });
}

function flaglessHelp(settings: readonly Setting[]): string {
  const lines = settings.map(({ variable, key, help }) => `  ${variable} (file: ${key})\n      ${help}`);
  return `\nOnly by variable or file, because others can read a command line:\n${lines.join('\n')}`;
}

/**
 * Reads the file and the environment, and puts the values in effect into the options of the command. Throws
 * `WrongSettings` with a sentence about the first error, and a usage error where a flag is wrong.
 */
export function applySettings(command: Command): void {
  try {
    const read = readSettings(command);
    read_of.set(command, read);
    for (const { name, value, origin } of read.effective) {
      command.setOptionValueWithSource(name, value, origin.from);
    }
  } catch (error) {
    if (!(error instanceof ConfigurationRefused)) throw error;
    const is_usage =
      error instanceof SettingsContradict && error.names.some((name) => flagsOf(command).has(name));
    // Only at the start, because later there is nobody at the terminal.
    if (is_usage && !read_of.has(command)) command.error(`error: ${error.message}`);
    throw new WrongSettings(error.message, { cause: error });
  }
}

/** Returns the settings that `applySettings` last read for the command. */
export function settingsOf(command: Command): ReadSettings {
  return read_of.get(command) ?? { effective: [], config_file: null, file_refusal: null, warnings: [] };
}

/** Returns true if the command line has the setting's flag. */
export function hasFlag(command: Command, name: SettingName): boolean {
  return flagsOf(command).has(name);
}

/** Returns the text that a setting has in the environment or the file, where a flag hides it; null for none. */
export function textBehindFlag(command: Command, name: SettingName): string | null {
  if (!hasFlag(command, name)) return null;
  const { file } = fileFor(command);
  const [hidden] = effectiveSettings([name], { flags: new Map(), environment: process.env, file });
  return hidden?.text ?? null;
}

function readSettings(command: Command): ReadSettings {
  const flags = flagsOf(command);
  const { file, file_refusal } = fileFor(command);
  const sources = { flags, environment: process.env, file };
  const effective = effectiveSettings(names_of.get(command) ?? [], sources);
  const wrong = contradiction(effective);
  if (wrong !== null) throw new SettingsContradict(wrong.names, wrong.sentence);
  return {
    effective,
    config_file: file?.path ?? null,
    file_refusal,
    warnings: [
      ...(file?.warnings ?? []),
      ...(file === null ? [] : shadowedSettings(effective, file)),
      ...unknownVariables(process.env).map(
        (name) => `The variable ${name} is no setting: it changes nothing.`,
      ),
    ],
  };
}

function fileFor(command: Command): {
  readonly file: ConfigFile | null;
  readonly file_refusal: string | null;
} {
  try {
    const named: string | undefined =
      command.getOptionValue('config') ?? (process.env[CONFIG_VARIABLE] || undefined);
    // A file that was read before must still be there: without it, every setting would become its default.
    const before = settingsOf(command).config_file ?? undefined;
    return { file: readConfigFile(named ?? before), file_refusal: null };
  } catch (error) {
    if (!(error instanceof ConfigurationRefused) || !without_refused_file.has(command)) throw error;
    return { file: null, file_refusal: error.message };
  }
}

/** Returns the flags of the command line, before any other source was applied. */
function flagsOf(command: Command): ReadonlyMap<SettingName, string> {
  const known = flags_of.get(command);
  if (known !== undefined) return known;
  const names = names_of.get(command) ?? [];
  const flags = new Map(
    names
      .filter((name) => command.getOptionValueSource(name) === 'cli')
      .map((name) => [name, String(command.getOptionValue(name))] as const),
  );
  flags_of.set(command, flags);
  return flags;
}
