import type { Command } from 'commander';
import { OPERATOR } from '../accounts/actor.ts';
import { listUsers, signUp } from '../accounts/users.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { formatTime, printJson, printLine, printTable } from './output.ts';

/** `tds user …` */
export function registerUsers(program: Command): void {
  const parent = program.command('user').description('people, who can be members of organizations');

  jsonCommand(parent, {
    usage: 'create',
    description: 'create a user with a personal organization, which they own',
    example: 'tds user create ada@example.com "Ada Lovelace"',
  })
    .argument('<email>', 'address that you know to be the person’s own')
    .argument('<name>')
    .action(async (email: string, name: string, options: JsonOptions) => {
      const created = await withData(options, (context) => signUp(context, { email, name }));
      if (options.json) {
        printJson(created);
        return;
      }
      const { user, organization } = created;
      printLine(
        `Created user ${user.name} <${user.email}> (${user.id}) with organization ${organization.name} (${organization.id}).`,
      );
    });

  jsonCommand(parent, {
    usage: 'list',
    description: 'list the users',
    example: 'tds user list',
  }).action(async (options: JsonOptions) => {
    const users = await withData(options, (context) => listUsers(context, OPERATOR));
    if (options.json) {
      printJson(users);
      return;
    }
    printTable(
      ['ID', 'EMAIL', 'NAME', 'CREATED'],
      users.map((row) => [row.id, row.email, row.name, formatTime(row.created_at_ms)]),
      'There is no user.',
    );
  });
}
