import { Argument, type Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import { createOperator, setOperator } from '../accounts/operators.ts';
import { listUsers, signUp } from '../accounts/users.ts';
import type { Values } from '../config/settings.ts';
import {
  type DataOptions,
  dataCommand,
  type JsonOptions,
  jsonCommand,
  type ListOptions,
  listCommand,
  withData,
} from './command.ts';
import { addSettings } from './command-settings.ts';
import { userByEmail } from './lookup.ts';
import { formatTime, printJson, printLine, printRows } from './output.ts';

type CreateOptions = JsonOptions & { readonly operator?: true };
type ResetOptions = DataOptions & Values<'publicUrl' | 'url'>;

/** Adds `tds user …`. */
export function registerUsers(program: Command): void {
  const parent = program.command('user').description('people, who can be members of organizations');

  jsonCommand(parent, {
    usage: 'create',
    description: 'create a user with a personal organization, which they own',
    example: 'tds user create ada@example.com "Ada Lovelace"',
  })
    .argument('<email>', 'address that you know to be the person’s own')
    .argument('<name>')
    .option('--operator', 'let the user do in the console what the command line may do')
    .action(async (email: string, name: string, options: CreateOptions) => {
      const created = await withData(options, (context) =>
        options.operator === true
          ? createOperator(context, OPERATOR, { email, name })
          : signUp(context, { email, name }),
      );
      if (options.json) {
        printJson(created);
        return;
      }
      const { user, organization } = created;
      printLine(
        `Created user ${user.name} <${user.email}> (${user.id}) with organization ${organization.name} (${organization.id}).`,
      );
      printLine(
        `To set a password for the console: "tds user reset ${user.email}", or "Forgot password" on its sign-in page.`,
      );
    });

  dataCommand(parent, {
    usage: 'operator',
    description: 'let a user do in the console what the command line may do, or no longer',
    example: 'tds user operator ada@example.com on',
  })
    .argument('<email>')
    .addArgument(new Argument('<switch>', 'whether the user may').choices(['on', 'off']))
    .action(async (email: string, given: string, options: DataOptions) => {
      const is_operator = given === 'on';
      const user = await withData(options, async (context) => {
        const found = await userByEmail(context, email);
        await setOperator(context, OPERATOR, { user_id: found.id, is_operator });
        return found;
      });
      printLine(
        `${user.name} <${user.email}> is ${is_operator ? 'an operator now' : 'no operator any more'}.`,
      );
    });

  addSettings(
    dataCommand(parent, {
      usage: 'reset',
      description:
        'end a user’s password, sessions, second factor and passkeys, and print a link with which they set a password',
      example: 'tds user reset ada@example.com --public-url https://tds.example.com',
    }),
    ['publicUrl', 'url'],
  )
    .argument('<email>')
    .action(async (email: string, options: ResetOptions) => {
      // Loaded only here, because better-auth slows every other command down.
      const { printResetLink } = await import('./reset-link.ts');
      await printResetLink(options, email);
    });

  listCommand(parent, {
    usage: 'list',
    description: 'list the users',
    example: 'tds user list',
  }).action(async (options: ListOptions) => {
    const users = await withData(options, (context) => listUsers(context, OPERATOR));
    printRows(options, users, 'There is no user.', {
      ID: (row) => row.id,
      EMAIL: (row) => row.email,
      NAME: (row) => row.name,
      CREATED: (row) => formatTime(row.created_at_ms),
    });
  });
}
