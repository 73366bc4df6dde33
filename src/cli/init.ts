import type { Command } from 'commander';
import { AccountError } from '../access/errors.ts';
import { checkedEmail } from '../accounts/names.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import { formatDollars } from '../contract/money.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { FIRST_CREDIT_MICROS, initialize, isInitialized } from './initialize.ts';
import { ownerAdvice } from './organizations.ts';
import { printJson, printLine } from './output.ts';
import { addSettings } from './settings.ts';

type InitOptions = JsonOptions & Values<'owner'>;

/** Adds `tds init`. */
export function registerInit(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'init',
    description:
      'create the database with a first organization, $25 of credit and a first API key; on a terminal it asks for an owner where none is set',
    example: 'tds init --data ./data --owner ada@example.com',
  });
  addSettings(command, ['owner']).action(async (options: InitOptions) => {
    const { created, place } = await withData(
      options,
      async (context) => ({
        created: (await isInitialized(context.store))
          ? null
          : await initialize(context, { owner: options.owner ?? askOwner(options) }),
        place: isPostgres(options.database) ? context.database.name : options.data,
      }),
      { create: true },
    );
    if (options.json) {
      printJson(created === null ? { initialized: false } : { initialized: true, ...created });
    } else if (created === null) {
      printLine(`${place} is already initialised; nothing was changed.`);
    } else {
      printLine(`Initialised ${place}.`);
      printLine(`Organization: ${created.organization_name} (${created.organization_id})`);
      if (created.owner_user_id === null) printLine(ownerAdvice(created.organization_id));
      printLine(`Project:      Default (${created.default_project_id})`);
      printLine(`Credit:       $${formatDollars(FIRST_CREDIT_MICROS)}`);
      printLine(`API key:      ${created.key}`);
      printLine('The key is shown only this once.');
    }
  });
}

/** Asks at the terminal for the owner's address; undefined for no answer, and without a terminal. */
function askOwner({ json }: InitOptions): string | undefined {
  if (json || !process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  for (;;) {
    const answer = prompt('Email address of its owner (empty for none):')?.trim();
    if (answer === undefined || answer === '') return undefined;
    try {
      return checkedEmail(answer);
    } catch (error) {
      if (!(error instanceof AccountError)) throw error;
      printLine(error.message);
    }
  }
}
