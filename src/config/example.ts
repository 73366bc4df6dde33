import { flagName } from './effective.ts';
import type { Setting } from './setting.ts';
import { SETTING_NAMES, settingOf } from './settings.ts';

const WIDTH = 118;

const ON_RELOAD = {
  applied: ['SIGHUP applies a change.'],
  applied_while_set: ['SIGHUP applies a change from one value to another.'],
  restart: [],
} as const satisfies Record<Setting['on_reload'], readonly string[]>;

/** A file of settings with every one of them, each explained, and commented out so that the file changes nothing. */
export function exampleFile(): string {
  const lines = [
    '# Settings of the Typed Decision Service. Flags win over the environment, and that over this file.',
    '# A "#" without a space is before a setting with its default, or with an example where it has none.',
    '# A change counts from the next start, unless SIGHUP applies it.',
  ];
  let section = '';
  for (const name of SETTING_NAMES) {
    const setting = settingOf(name);
    const [own_section = '', key = ''] = setting.key.split('.');
    if (own_section !== section) lines.push('', `[${own_section}]`);
    section = own_section;
    lines.push('', ...wrapped(explanation(setting)), `#${key} = ${written(setting)}`);
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

/** The default, or the example, as TOML writes it. */
function written(setting: Setting): string {
  const text = setting.example ?? String(setting.default);
  return setting.kind.toml === 'string' ? JSON.stringify(text) : text;
}

/** Comment lines. */
function wrapped(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return lines;
}
