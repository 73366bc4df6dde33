import { Argument, type Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { addMember, changeRole, listMembers, removeMember } from '../accounts/members.ts';
import { ROLES, type Role } from '../contract/roles.ts';
import type { MemberRef } from '../store/account-records.ts';
import { type JsonOptions, jsonCommand, type ListOptions, listCommand, withData } from './command.ts';
import { organizationId, userByEmail } from './lookup.ts';
import { formatTime, printJson, printLine, printRows } from './output.ts';

async function memberRef(context: AccountContext, organization: string, email: string): Promise<MemberRef> {
  return {
    organization_id: await organizationId(context, organization),
    user_id: (await userByEmail(context, email)).id,
  };
}

/** The commands that set a member's role. */
const ROLE_COMMANDS = [
  {
    usage: 'add',
    description: 'add a user to an organization; its first member must be an owner',
    example: 'tds member add "Acme" ada@example.com developer',
    write: addMember,
  },
  {
    usage: 'role',
    description: 'give a member another role',
    example: 'tds member role "Acme" ada@example.com admin',
    write: changeRole,
  },
];

/** Adds `tds member …`. */
export function registerMembers(program: Command): void {
  const parent = program
    .command('member')
    .description('members of organizations and their roles; an organization keeps at least one owner');

  for (const { write, ...text } of ROLE_COMMANDS) {
    jsonCommand(parent, text)
      .argument('<org>', 'id or unique name')
      .argument('<email>', 'address of the user')
      .addArgument(new Argument('<role>', 'what they may do').choices(ROLES))
      .action(async (organization: string, email: string, role: Role, options: JsonOptions) => {
        const member = await withData(options, async (context) => {
          const written = { ...(await memberRef(context, organization, email)), role };
          await write(context, OPERATOR, written);
          return written;
        });
        if (options.json) printJson(member);
        else printLine(`${email} is ${role} of ${organization}.`);
      });
  }

  jsonCommand(parent, {
    usage: 'remove',
    description: 'remove a member; keys that they created go on working, open invitations that they sent end',
    example: 'tds member remove "Acme" ada@example.com',
  })
    .argument('<org>', 'id or unique name')
    .argument('<email>', 'address of the user')
    .action(async (organization: string, email: string, options: JsonOptions) => {
      const removed = await withData(options, async (context) => {
        const member = await memberRef(context, organization, email);
        await removeMember(context, OPERATOR, member);
        return member;
      });
      if (options.json) printJson(removed);
      else {
        printLine(
          `${email} is no member of ${organization} any more; open invitations that they sent are revoked.`,
        );
      }
    });

  listCommand(parent, {
    usage: 'list',
    description: 'list the members of an organization',
    example: 'tds member list "Acme"',
  })
    .argument('<org>', 'id or unique name')
    .action(async (organization: string, options: ListOptions) => {
      const members = await withData(options, async (context) =>
        listMembers(context, OPERATOR, await organizationId(context, organization)),
      );
      printRows(options, members, 'The organization has no member.', {
        EMAIL: (row) => row.email,
        NAME: (row) => row.name,
        ROLE: (row) => row.role,
        'MEMBER SINCE': (row) => formatTime(row.created_at_ms),
        USER: (row) => row.user_id,
      });
    });
}
