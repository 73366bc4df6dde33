import type { Command } from 'commander';
import type { Effective, Origin } from '../config/effective.ts';
import { exampleFile } from '../config/example.ts';
import { SETTING_NAMES } from '../config/settings.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { printJson, printLine, printTable } from './output.ts';
import { addSettings, settingsOf } from './settings.ts';

interface ConfigOptions extends JsonOptions {
  readonly example?: true;
}

/** What is printed in place of a secret. */
const MASK = '********';

/** `tds config` */
export function registerConfig(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'config',
    description:
      'print every setting with its value and where that came from; exit code 1 with a sentence when something is wrong',
    example: 'tds config --config /etc/tds.toml',
  }).option('--example', 'print a TOML file with every setting, each explained and commented out, instead');
  // `--data` is there already.
  addSettings(
    command,
    SETTING_NAMES.filter((name) => name !== 'data'),
  ).action((options: ConfigOptions) => {
    if (options.example) process.stdout.write(exampleFile());
    else print(command, options);
  });
}

/** Whether the command is `tds config --example`, which must work where settings are wrong. */
export function asksForExample(command: Command): boolean {
  return command.name() === 'config' && command.getOptionValue('example') === true;
}

function print(command: Command, { json }: ConfigOptions): void {
  const { effective, config_file, warnings } = settingsOf(command);
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

function shown({ text, setting: { is_secret, unit } }: Effective): string {
  if (text === null) return '-';
  if (is_secret) return MASK;
  return unit === undefined ? text : `${text} ${unit}`;
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

/** The value has its own type; that of a secret is its mask. */
function entryOf({ text, value, origin, setting: { key, kind, is_secret, unit } }: Effective) {
  const written = kind.toml === 'string' ? text : (value ?? null);
  return { setting: key, value: is_secret && text !== null ? MASK : written, unit: unit ?? null, ...origin };
}
