import { type ConfigFile, wrongText } from './config-file.ts';
import { ConfigurationRefused } from './configuration-refused.ts';
import { publicText, type Setting } from './setting.ts';
import { SETTING_NAMES, type SettingName, settingOf } from './settings.ts';

/** The variable that names the file of settings. */
export const CONFIG_VARIABLE = 'TDS_CONFIG';

/** The variable with the address of the metrics that `tds top` reads. */
export const METRICS_URL_VARIABLE = 'TDS_METRICS_URL';

/** The folder that an executable unpacks itself to (`src/binary/launcher.ts`), before settings are read. */
const CACHE_VARIABLE = 'TDS_CACHE';

/** The prefix of the tests' variables, which are no settings. */
const TEST_VARIABLES = 'TDS_TEST_';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The sources of settings, in order of precedence. */
export interface Sources {
  /** The texts of the flags of the command line. */
  readonly flags: ReadonlyMap<SettingName, string>;
  readonly environment: Environment;
  readonly file: ConfigFile | null;
}

/** The origin of a value. */
export type Origin =
  | { readonly from: 'flag'; readonly flag: string }
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'file'; readonly path: string; readonly line: number }
  | { readonly from: 'default' };

/** A setting with its effective value. */
export interface Effective {
  readonly name: SettingName;
  readonly setting: Setting;
  /** Undefined where there is none. */
  readonly value: unknown;
  /** The text of the value; null where there is none. */
  readonly text: string | null;
  readonly origin: Origin;
}

/**
 * Returns the value of each of the settings: of its flag, else its variable, else the file, else its default.
 * An empty variable counts as unset. Throws `ConfigurationRefused` where the variable in effect has an
 * invalid value.
 */
export function effectiveSettings(names: readonly SettingName[], sources: Sources): readonly Effective[] {
  return names.map((name) => {
    const setting = settingOf(name);
    const given = givenText(name, setting, sources);
    if (given === null) {
      const value = setting.default;
      return {
        name,
        setting,
        value,
        text: value === undefined ? null : String(value),
        origin: { from: 'default' },
      };
    }
    return { name, setting, value: setting.kind.parse(given.text), ...given };
  });
}

/** Returns one sentence about each setting of the file that a flag or a variable overrides. */
export function shadowedSettings(effective: readonly Effective[], file: ConfigFile): readonly string[] {
  return effective.flatMap(({ name, setting, text, origin }) => {
    const entry = file.values.get(name);
    const winner =
      origin.from === 'flag' ? origin.flag : origin.from === 'environment' ? origin.variable : null;
    if (entry === undefined || winner === null || text === null || entry.text === text) return [];
    const [here, there] = [text, entry.text].map((value) => publicText(setting, value));
    return [
      `${setting.key} in line ${entry.line} of ${file.path} (${there}) does not count: ${winner} says ${here}.`,
    ];
  });
}

function givenText(
  name: SettingName,
  setting: Setting,
  { flags, environment, file }: Sources,
): (Pick<Effective, 'origin'> & { readonly text: string }) | null {
  const flag = flags.get(name);
  if (flag !== undefined) return { text: flag, origin: { from: 'flag', flag: flagName(setting) } };
  const { variable } = setting;
  const text = environment[variable] ?? '';
  if (text !== '') {
    const wrong = wrongText(setting, text);
    if (wrong !== null) throw new ConfigurationRefused(`The variable ${variable} ${wrong}`);
    return { text, origin: { from: 'environment', variable } };
  }
  const entry = file?.values.get(name);
  if (file === null || entry === undefined) return null;
  return { text: entry.text, origin: { from: 'file', path: file.path, line: entry.line } };
}

/** Returns the flag without its argument; empty where there is none. */
export function flagName({ flag }: Setting): string {
  return flag?.split(' ')[0] ?? '';
}

/**
 * Returns the variables that look like settings but are not. Most are misspelt settings, which would have no
 * effect.
 */
export function unknownVariables(environment: Environment): readonly string[] {
  const variables = SETTING_NAMES.map((name) => settingOf(name).variable);
  const known = new Set<string>([CONFIG_VARIABLE, METRICS_URL_VARIABLE, CACHE_VARIABLE, ...variables]);
  return Object.keys(environment)
    .filter((name) => name.startsWith('TDS_') && !name.startsWith(TEST_VARIABLES) && !known.has(name))
    .sort();
}
