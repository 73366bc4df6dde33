import type { Command } from 'commander';
import { formatDollars } from '../money.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { FIRST_CREDIT_MICROS, initialize } from './initialize.ts';
import { printJson, printLine } from './output.ts';

/** `tds init` */
export function registerInit(program: Command): void {
  jsonCommand(program, {
    usage: 'init',
    description: 'create the data directory with a first organization, $25 of credit and a first API key',
    example: 'tds init --data ./data',
  }).action(async (options: JsonOptions) => {
    const created = await withData(options, (context) => initialize(context), { create: true });
    if (options.json) {
      printJson(created === null ? { initialized: false } : { initialized: true, ...created });
    } else if (created === null) {
      printLine(`${options.data} is already initialised; nothing was changed.`);
    } else {
      printLine(`Initialised ${options.data}.`);
      printLine(`Organization: ${created.organization_name} (${created.organization_id})`);
      printLine(`Project:      Default (${created.default_project_id})`);
      printLine(`Credit:       $${formatDollars(FIRST_CREDIT_MICROS)}`);
      printLine(`API key:      ${created.key}`);
      printLine('The key is shown only this once.');
    }
  });
}
