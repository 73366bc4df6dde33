import type { Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import { createKey, listKeys, revokeKey } from '../accounts/keys.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { actorOf, keyId, organizationId, projectId } from './lookup.ts';
import { formatTime, printJson, printLine, printTable } from './output.ts';
import { askToForgetKeys } from './reload-socket.ts';

/** The option of commands that can be done in a person's name. */
const AS = [
  '--as <email>',
  'the user who does it, with what their role allows (default: the operator)',
] as const;

interface AsOptions extends JsonOptions {
  readonly as?: string;
}

interface ListOptions extends JsonOptions {
  readonly org?: string;
  readonly project?: string;
  readonly revoked?: true;
}

/** Adds `tds key …`. */
export function registerKeys(program: Command): void {
  const parent = program.command('key').description('API keys');

  jsonCommand(parent, {
    usage: 'create',
    description: 'create an API key of a project; it is printed this once',
    example: 'tds key create Default "Production server" --as ada@example.com',
  })
    .argument('<project>', 'id or unique name')
    .argument('<name>')
    .option(...AS)
    .action(async (text: string, name: string, options: AsOptions) => {
      const created = await withData(options, async (context) =>
        createKey(context, await actorOf(context, options.as), {
          project_id: await projectId(context, text),
          name,
        }),
      );
      if (options.json) {
        printJson(created);
        return;
      }
      printLine(`Created API key ${created.name} (${created.id}):`);
      printLine(created.key);
      printLine('It is shown only this once.');
    });

  jsonCommand(parent, {
    usage: 'list',
    description: 'list the active API keys',
    example: 'tds key list --project Default',
  })
    .option('--org <org>', 'only of this organization (id or unique name)')
    .option('--project <project>', 'only of this project (id or unique name)')
    .option('--revoked', 'list the revoked ones instead')
    .action(async (options: ListOptions) => {
      const keys = await withData(options, async (context) => {
        const organization_id =
          options.org === undefined ? undefined : await organizationId(context, options.org);
        const project_id =
          options.project === undefined
            ? undefined
            : await projectId(context, options.project, organization_id);
        return listKeys(context, OPERATOR, {
          ...(organization_id === undefined ? {} : { organization_id }),
          ...(project_id === undefined ? {} : { project_id }),
          revoked: options.revoked === true,
        });
      });
      if (options.json) {
        printJson(keys);
        return;
      }
      printTable(
        ['ID', 'NAME', 'KEY', 'PROJECT', 'ORGANIZATION', 'CREATED BY', 'CREATED', 'LAST USED', 'REVOKED'],
        keys.map((row) => [
          row.id,
          row.name,
          `${row.display_prefix}…`,
          row.project_name,
          row.organization_name,
          row.created_by_name ?? 'operator',
          formatTime(row.created_at_ms),
          formatTime(row.last_used_at_ms),
          formatTime(row.revoked_at_ms),
        ]),
        'There is no such API key.',
      );
    });

  jsonCommand(parent, {
    usage: 'revoke',
    description:
      'revoke an API key for good; the server on the data refuses it at once, and other nodes within 60 seconds',
    example: 'tds key revoke "Production server"',
  })
    .argument('<key>', 'id or unique name')
    .option(...AS)
    .action(async (text: string, options: AsOptions) => {
      const revoked = await withData(options, async (context) => {
        const id = await keyId(context, text);
        return { id, ...(await revokeKey(context, await actorOf(context, options.as), id)) };
      });
      const is_refused = await askToForgetKeys(options.data);
      if (options.json) {
        printJson(revoked);
        return;
      }
      printLine(`${revoked.id} is revoked since ${formatTime(revoked.revoked_at_ms)}.`);
      printLine(
        is_refused
          ? `The service on ${options.data} refuses it from now on; other nodes do within 60 seconds.`
          : `No service was reached on ${options.data}; those elsewhere refuse it within 60 seconds.`,
      );
    });
}
