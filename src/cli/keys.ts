import type { Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import {
  type CreatedKey,
  createKey,
  EXPIRY_DAYS_MAX,
  listKeys,
  OVERLAP_DAYS_MAX,
  revokeKey,
  rotateKey,
  setKeyExpiry,
  setKeyLimit,
} from '../accounts/keys.ts';
import { formatDollars } from '../contract/money.ts';
import { type JsonOptions, jsonCommand, type ListOptions, listCommand, withData } from './command.ts';
import { actorOf, keyId, organizationId, projectId } from './lookup.ts';
import { formatLimit, formatTime, jsonText, printJson, printLine, printRows, writeSecret } from './output.ts';
import { askToForgetKeys, whenRefused } from './reload-socket.ts';
import {
  dollars,
  dollarsOrNone,
  durationOrNone,
  type NONE,
  nullIfNone,
  timeAhead,
  timeAheadOrNone,
} from './values.ts';

/** The option of commands that can be done in a person's name. */
const AS = [
  '--as <email>',
  'the user who does it, with what their role allows (default: the operator)',
] as const;

interface AsOptions extends JsonOptions {
  readonly as?: string;
}

interface CreateOptions extends AsOptions {
  readonly expires?: number;
  readonly monthlyLimit?: number;
}

interface RotateOptions extends AsOptions {
  readonly overlap: number | typeof NONE;
  readonly expires?: number;
}

interface KeyListOptions extends ListOptions {
  readonly org?: string;
  readonly project?: string;
  readonly revoked?: true;
}

/** When a new key expires. */
const EXPIRES = [
  '--expires <when>',
  `a duration such as 90d, a UTC date, or a time, in the next ${EXPIRY_DAYS_MAX} days (default: never)`,
  timeAhead,
] as const;

/** Adds `tds key …`. */
export function registerKeys(program: Command): void {
  const parent = program.command('key').description('API keys');
  registerCreation(parent);
  registerList(parent);
  registerExpiry(parent);
  registerLimit(parent);
  registerRotation(parent);
  registerRevocation(parent);
}

function registerCreation(parent: Command): void {
  jsonCommand(parent, {
    usage: 'create',
    description: 'create an API key of a project; it is printed this once',
    example: [
      'tds key create Default "Production server" --as ada@example.com',
      'tds key create Default "Load test" --expires 7d --monthly-limit 20',
    ],
  })
    .argument('<project>', 'id or unique name')
    .argument('<name>')
    .option(...EXPIRES)
    .option(
      '--monthly-limit <dollars>',
      'the most that it may spend in a UTC month (default: no limit)',
      dollars,
    )
    .option(...AS)
    .action(async (text: string, name: string, options: CreateOptions) => {
      await withData(options, async (context) => {
        const given = {
          project_id: await projectId(context, text),
          name,
          expires_at_ms: options.expires ?? null,
          monthly_limit_micros: options.monthlyLimit ?? null,
        };
        const keep = (created: CreatedKey) => writeSecret(createdText(created, options));
        await createKey(context, await actorOf(context, options.as), given, keep);
      });
    });
}

function registerList(parent: Command): void {
  listCommand(parent, {
    usage: 'list',
    description: 'list the active API keys',
    example: 'tds key list --project Default',
  })
    .option('--org <org>', 'only of this organization (id or unique name)')
    .option('--project <project>', 'only of this project (id or unique name)')
    .option('--revoked', 'list the revoked ones instead')
    .action(async (options: KeyListOptions) => {
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
      printRows(options, keys, 'There is no such API key.', {
        ID: (row) => row.id,
        NAME: (row) => row.name,
        KEY: (row) => `${row.display_prefix}…`,
        PROJECT: (row) => row.project_name,
        ORGANIZATION: (row) => row.organization_name,
        'CREATED BY': (row) => row.created_by_name ?? 'operator',
        CREATED: (row) => formatTime(row.created_at_ms),
        'LAST USED': (row) => formatTime(row.last_used_at_ms),
        'SPENT THIS MONTH': (row) => formatDollars(row.spent_this_month_micros),
        LIMIT: (row) => formatLimit(row.monthly_limit_micros),
        EXPIRES: (row) => formatTime(row.expires_at_ms),
        REVOKED: (row) => formatTime(row.revoked_at_ms),
      });
    });
}

function registerRevocation(parent: Command): void {
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
      printLine(whenRefused('it', options.data, is_refused));
    });
}

function registerExpiry(parent: Command): void {
  jsonCommand(parent, {
    usage: 'expire',
    description: 'set the time from which an API key is refused as a revoked one, or none',
    example: ['tds key expire "Production server" 2027-06-30', 'tds key expire "Production server" none'],
  })
    .argument('<key>', 'id or unique name')
    .argument(
      '<when>',
      `a duration such as 90d, a UTC date, or a time, in the next ${EXPIRY_DAYS_MAX} days; or none`,
      timeAheadOrNone,
    )
    .option(...AS)
    .action(async (text: string, when: number | typeof NONE, options: AsOptions) => {
      const expires_at_ms = nullIfNone(when);
      const id = await withData(options, async (context) => {
        const key_id = await keyId(context, text);
        await setKeyExpiry(context, await actorOf(context, options.as), { key_id, expires_at_ms });
        return key_id;
      });
      await askToForgetKeys(options.data);
      if (options.json) printJson({ id, expires_at_ms });
      else printLine(expires_at_ms === null ? `${id} does not expire.` : expiryLine(id, expires_at_ms));
    });
}

function registerLimit(parent: Command): void {
  jsonCommand(parent, {
    usage: 'limit',
    description:
      'set what an API key and those that replace it may spend in a UTC calendar month, or take the limit away',
    example: ['tds key limit "Production server" 20', 'tds key limit "Production server" none'],
  })
    .argument('<key>', 'id or unique name')
    .argument('<dollars>', 'dollars a month, or "none"', dollarsOrNone)
    .option(...AS)
    .action(async (text: string, limit: number | typeof NONE, options: AsOptions) => {
      const monthly_limit_micros = nullIfNone(limit);
      const id = await withData(options, async (context) => {
        const key_id = await keyId(context, text);
        await setKeyLimit(context, await actorOf(context, options.as), { key_id, monthly_limit_micros });
        return key_id;
      });
      if (options.json) printJson({ id, monthly_limit_micros });
      else printLine(limitLine(id, monthly_limit_micros));
    });
}

function registerRotation(parent: Command): void {
  jsonCommand(parent, {
    usage: 'rotate',
    description:
      'create an API key of the same name and project in place of another, which works on for the overlap; the new one is printed this once',
    example: [
      'tds key rotate "Production server" --overlap 7d',
      'tds key rotate "Production server" --overlap none',
    ],
  })
    .argument('<key>', 'id or unique name')
    .requiredOption(
      '--overlap <duration>',
      `required: the time for which both keys work, up to ${OVERLAP_DAYS_MAX}d; none revokes the old one at once`,
      durationOrNone,
    )
    .option(...EXPIRES)
    .option(...AS)
    .action(async (text: string, options: RotateOptions) => {
      const overlap_ms = nullIfNone(options.overlap) ?? 0;
      const { replaced } = await withData(options, async (context) => {
        const given = {
          key_id: await keyId(context, text),
          overlap_ms,
          expires_at_ms: options.expires ?? null,
        };
        const keep = (rotated: CreatedKey) => writeSecret(createdText(rotated, options));
        return rotateKey(context, await actorOf(context, options.as), given, keep);
      });
      const is_refused = await askToForgetKeys(options.data);
      if (options.json) return;
      if (replaced.expires_at_ms !== null) printLine(expiryLine(replaced.id, replaced.expires_at_ms));
      else printLine(`${replaced.id} is revoked. ${whenRefused('it', options.data, is_refused)}`);
    });
}

function createdText(created: CreatedKey, { json }: JsonOptions): string {
  if (json) return jsonText(created);
  const { id, name, key, expires_at_ms, monthly_limit_micros } = created;
  const lines = [`Created API key ${name} (${id}):`, key, 'It is shown only this once.'];
  if (expires_at_ms !== null) lines.push(expiryLine(id, expires_at_ms));
  if (monthly_limit_micros !== null) lines.push(limitLine(id, monthly_limit_micros));
  return `${lines.join('\n')}\n`;
}

function limitLine(id: string, monthly_limit_micros: number | null): string {
  return `The monthly spend limit of ${id} is ${formatLimit(monthly_limit_micros)}.`;
}

function expiryLine(id: string, expires_at_ms: number): string {
  return `${id} works until ${formatTime(expires_at_ms)}.`;
}
