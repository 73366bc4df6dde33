import type { Command } from 'commander';
import { AccountError } from '../access/account-error.ts';
import { checkedEmail } from '../accounts/names.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import { formatDollars } from '../contract/money.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { addSettings } from './command-settings.ts';
import { FIRST_CREDIT_MICROS, type Initialized, initialize, isInitialized } from './initialize.ts';
import { ownerAdvice } from './organizations.ts';
import { jsonText, printJson, printLine, writeSecret } from './output.ts';

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
    await withData(
      options,
      async (context) => {
        const place = isPostgres(options.database) ? context.database.name : options.data;
        const keep = (created: Initialized) =>
          writeSecret(
            options.json ? jsonText({ initialized: true, ...created }) : initializedText(place, created),
          );
        const created = (await isInitialized(context.store))
          ? null
          : await initialize(context, { owner: options.owner ?? askOwner(options), keep });
        if (created !== null) return;
        if (options.json) printJson({ initialized: false });
        else printLine(`${place} is already initialised; nothing was changed.`);
      },
      { create: true },
    );
  });
}

function initializedText(place: string, created: Initialized): string {
  const { organization_id, organization_name, owner_user_id, default_project_id, key } = created;
  const lines = [
    `Initialised ${place}.`,
    `Organization: ${organization_name} (${organization_id})`,
    ...(owner_user_id === null ? [ownerAdvice(organization_id)] : []),
    `Project:      Default (${default_project_id})`,
    `Credit:       $${formatDollars(FIRST_CREDIT_MICROS)}`,
    `API key:      ${key}`,
    'The key is shown only this once.',
  ];
  return `${lines.join('\n')}\n`;
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
