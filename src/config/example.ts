import { flagName } from './effective.ts';
import type { Setting } from './setting.ts';
import { SETTING_NAMES, type SettingName, settingOf } from './settings.ts';

const WIDTH = 118;

const ON_RELOAD = {
  applied: ['SIGHUP applies a change.'],
  applied_while_set: ['SIGHUP applies a change from one value to another.'],
  restart: [],
} as const satisfies Record<Setting['on_reload'], readonly string[]>;

/** Returns a file with every setting, explained and commented out, so that the file changes nothing. */
export function exampleFile(): string {
  return fileWith(
    [
      '# Settings of the Typed Decision Service. Flags win over the environment, and that over this file.',
      '# A "#" without a space is before a setting with its default, or with an example where it has none.',
      '# A change counts from the next start, unless SIGHUP applies it.',
    ],
    (name, key) => {
      const { example, default: value } = settingOf(name);
      return `#${key} = ${written(settingOf(name), example ?? String(value))}`;
    },
  );
}

/** Returns a file of settings with these values, each explained; `heading` are comment lines. */
export function filledFile(heading: readonly string[], values: ReadonlyMap<SettingName, string>): string {
  return fileWith(heading, (name, key) => {
    const text = values.get(name);
    return text === undefined ? null : `${key} = ${written(settingOf(name), text)}`;
  });
}

/** Returns a file of the settings that have a line, in the order of the table. */
function fileWith(
  heading: readonly string[],
  lineOf: (name: SettingName, key: string) => string | null,
): string {
  const lines = [...heading];
  let section = '';
  for (const name of SETTING_NAMES) {
    const setting = settingOf(name);
    const [own_section = '', key = ''] = setting.key.split('.');
    const line = lineOf(name, key);
    if (line === null) continue;
    if (own_section !== section) lines.push('', `[${own_section}]`);
    section = own_section;
    lines.push('', ...wrapped(explanation(setting)), line);
  }
  return `${lines.join('\n')}\n`;
}

function explanation(setting: Setting): string {
  const { help, unit, is_secret, on_reload, variable } = setting;
  const start = `${help.slice(0, 1).toUpperCase()}${help.slice(1)}.`;
  const flag = setting.flag === null ? '' : ` or ${flagName(setting)}`;
  return [
    start,
    ...(unit === undefined ? [] : [`In ${unit}.`]),
    ...(is_secret ? ['A secret: keep this file from other users.'] : []),
    `Also ${variable}${flag}.`,
    ...ON_RELOAD[on_reload],
  ].join(' ');
}

/** Returns a value in TOML syntax. */
function written(setting: Setting, text: string): string {
  const { toml, word } = setting.kind;
  return toml === 'string' || text === word ? JSON.stringify(text) : text;
}

/** Returns comment lines. */
function wrapped(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return lines;
}
