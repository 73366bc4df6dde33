import type { Command } from 'commander';
import type { Effective, Origin } from '../config/effective.ts';
import { exampleFile } from '../config/example.ts';
import { publicText } from '../config/setting.ts';
import { DATA_SETTINGS, SETTING_NAMES, type SettingName } from '../config/settings.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { addSettings, settingsOf } from './command-settings.ts';
import { printJson, printLine, printTable } from './output.ts';

interface ConfigOptions extends JsonOptions {
  readonly example?: true;
}

/** Adds `tds config`. */
export function registerConfig(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'config',
    description:
      'print every setting with its value and where that came from; exit code 2 with a sentence when something is wrong',
    example: 'tds config --config /etc/tds.toml',
  }).option('--example', 'print a TOML file with every setting, each explained and commented out, instead');
  // The settings of all commands on stored data are there already.
  const there: readonly SettingName[] = DATA_SETTINGS;
  addSettings(
    command,
    SETTING_NAMES.filter((name) => !there.includes(name)),
  ).action((options: ConfigOptions) => {
    if (options.example) process.stdout.write(exampleFile());
    else print(command, options);
  });
}

/** Returns true for `tds config --example`, which must work even with wrong settings. */
export function asksForExample(command: Command): boolean {
  return command.name() === 'config' && command.getOptionValue('example') === true;
}

function print(command: Command, { json }: ConfigOptions): void {
  const { config_file, warnings, ...read } = settingsOf(command);
  const effective = SETTING_NAMES.flatMap((name) => read.effective.filter((one) => one.name === name));
  if (json) {
    printJson({ config_file, settings: effective.map(entryOf), warnings });
    return;
  }
  printTable(
    ['SETTING', 'VALUE', 'FROM'],
    effective.map((one) => [one.setting.key, shown(one), originText(one.origin)]),
    '',
  );
  printLine(`\nFile of settings: ${config_file ?? 'none'}`);
  for (const warning of warnings) process.stderr.write(`tds: ${warning}\n`);
}

function shown({ text, setting }: Effective): string {
  if (text === null) return '-';
  const { is_secret, unit } = setting;
  const printed = publicText(setting, text);
  return unit === undefined || is_secret ? printed : `${printed} ${unit}`;
}

function originText(origin: Origin): string {
  switch (origin.from) {
    case 'flag':
      return origin.flag;
    case 'environment':
      return origin.variable;
    case 'file':
      return `line ${origin.line} of ${origin.path}`;
    case 'default':
      return 'default';
  }
}

/** Returns an entry of the JSON. The value has its own type; that of a secret is its mask. */
function entryOf({ text, value, origin, setting }: Effective) {
  const { key, kind, is_secret, unit } = setting;
  const is_text = text !== null && (kind.toml === 'string' || is_secret);
  const written = is_text ? publicText(setting, text) : (value ?? null);
  return { setting: key, value: written, unit: unit ?? null, ...origin };
}
