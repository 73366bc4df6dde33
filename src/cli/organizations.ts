import type { Command } from 'commander';
import { AccountError } from '../access/account-error.ts';
import { OPERATOR } from '../access/actor.ts';
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  renameOrganization,
  setSuspended,
  setTierSettings,
} from '../accounts/organizations.ts';
import { formatDollars } from '../contract/money.ts';
import { limitsFor, tierInForce } from '../contract/tiers.ts';
import { creditByHand, topUpRange } from '../payments/credit.ts';
import type { Organization, TierSettings } from '../store/account-records.ts';
import { systemClock } from '../time/clock.ts';
import {
  type DataContext,
  type JsonOptions,
  jsonCommand,
  type ListOptions,
  listCommand,
  withData,
} from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { organizationId, userByEmail } from './lookup.ts';
import { addEntry, type EntryOptions, withEntry } from './money-entry.ts';
import { formatTime, jsonText, printJson, printLine, printRows } from './output.ts';
import { askToForgetKeys } from './reload-socket.ts';
import { dollars, dollarsOrNone, type NONE, nullIfNone, wholeNumberOrNone } from './values.ts';

/** Returns an organization as scripts get it. */
function organizationSummary(organization: Organization) {
  const { id, name, tier, credit_micros, held_micros, paid_micros, created_at_ms } = organization;
  return { id, name, tier, credit_micros, held_micros, paid_micros, created_at_ms };
}

/** Returns what is printed of an organization after a change of its credit. */
export function creditText(organization: Organization, { json }: { readonly json?: true }): string {
  const { name, credit_micros, tier } = organization;
  if (json) return jsonText(organizationSummary(organization));
  return `${name} has $${formatDollars(credit_micros)} of credit and is on Tier ${tier}.\n`;
}

function tierSummary(organization: Organization) {
  const { id, name, minimum_tier, paid_micros, first_paid_at_ms } = organization;
  const { requests_per_minute, tokens_per_minute, questions_per_request, top_up_max_micros } = organization;
  const now_ms = systemClock.now_ms();
  const tier = tierInForce(organization, now_ms);
  const range = topUpRange(organization, now_ms);
  return {
    id,
    name,
    tier,
    minimum_tier,
    paid_micros,
    first_paid_at_ms,
    limits: limitsFor(tier, organization),
    top_up_min_micros: range.least,
    top_up_max_micros: range.most,
    dedicated: { requests_per_minute, tokens_per_minute, questions_per_request, top_up_max_micros },
  };
}

function printTier(organization: Organization): void {
  const { limits, dedicated, ...summary } = tierSummary(organization);
  const ownLimit = (value: number | null) => (value === null ? '' : ' (dedicated)');
  printLine(`Organization:          ${summary.name} (${summary.id})`);
  printLine(
    `Tier:                  ${summary.tier}${summary.minimum_tier === null ? '' : ` (at least ${summary.minimum_tier})`}`,
  );
  printLine(
    `Paid in all:           $${formatDollars(summary.paid_micros)} since ${formatTime(summary.first_paid_at_ms)}`,
  );
  if (limits === null) {
    printLine('Limits:                no API access on Tier 0');
  } else {
    printLine(
      `Requests per minute:   ${limits.requests_per_minute}${ownLimit(dedicated.requests_per_minute)}`,
    );
    printLine(`Tokens per minute:     ${limits.tokens_per_minute}${ownLimit(dedicated.tokens_per_minute)}`);
    printLine(
      `Questions per request: ${limits.questions_per_request}${ownLimit(dedicated.questions_per_request)}`,
    );
  }
  printLine(
    `One top-up:            $${formatDollars(summary.top_up_min_micros)} to $${formatDollars(summary.top_up_max_micros)}${ownLimit(dedicated.top_up_max_micros)}`,
  );
}

interface TierOptions extends JsonOptions {
  readonly minimum?: number | typeof NONE;
  readonly requestsPerMinute?: number | typeof NONE;
  readonly tokensPerMinute?: number | typeof NONE;
  readonly questions?: number | typeof NONE;
  readonly topUpMax?: number | typeof NONE;
}

const TIER_OPTIONS = [
  ['minimum', 'minimum_tier'],
  ['requestsPerMinute', 'requests_per_minute'],
  ['tokensPerMinute', 'tokens_per_minute'],
  ['questions', 'questions_per_request'],
  ['topUpMax', 'top_up_max_micros'],
] as const;

function tierSettings(options: TierOptions): TierSettings {
  const settings: { -readonly [Name in keyof TierSettings]: TierSettings[Name] } = {};
  for (const [option, name] of TIER_OPTIONS) {
    const value = options[option];
    if (value !== undefined) settings[name] = nullIfNone(value);
  }
  return settings;
}

interface CreateOptions extends JsonOptions {
  readonly owner?: string;
}

/** Returns the advice about an organization without an owner. */
export function ownerAdvice(organization: string): string {
  return `It has no owner yet: give it one with: tds member add ${organization} EMAIL owner`;
}

interface CreditOptions extends EntryOptions {
  readonly force?: true;
}

/** Runs `work`, and mentions `--force` in refusals that it overrides. */
async function adviseForce<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AccountError && error.code === 'top_up_out_of_range')) throw error;
    throw new CommandFailed(`${error.message} Give --force to enter this amount all the same.`, {
      cause: error,
    });
  }
}

/** The commands that suspend an organization's keys, and lift the suspension. */
const SUSPENSION_COMMANDS = [
  {
    usage: 'suspend',
    description:
      'let the keys of an organization answer nothing: the server on the data refuses them at once, other nodes within 60 seconds; what runs is finished and charged',
    example: 'tds org suspend "Acme"',
    is_suspended: true,
    outcome: 'is suspended: the server on the data refuses its keys at once, other nodes within a minute.',
  },
  {
    usage: 'resume',
    description: 'lift the suspension of an organization: its keys work at once',
    example: 'tds org resume "Acme"',
    is_suspended: false,
    outcome: 'is not suspended: its keys work.',
  },
];

/** Adds `tds org …`. */
export function registerOrganizations(program: Command): void {
  const parent = program.command('org').description('organizations: credit, tier and limits');

  registerCreate(parent);
  registerList(parent);
  registerRename(parent);
  registerCredit(parent);
  registerSuspensions(parent);
  registerTier(parent);
}

function registerCreate(parent: Command): void {
  jsonCommand(parent, {
    usage: 'create <name>',
    description: 'create an organization with its Default project',
    example: 'tds org create "Acme" --owner ada@example.com',
  })
    .option('--owner <email>', 'the user who owns it; without one it has no member yet')
    .action(async (name: string, options: CreateOptions) => {
      const created = await withData(options, async (context) => {
        const owner =
          options.owner === undefined
            ? {}
            : { owner_user_id: (await userByEmail(context, options.owner)).id };
        return {
          owner_user_id: null,
          ...owner,
          ...(await createOrganization(context, OPERATOR, { name, ...owner })),
        };
      });
      if (options.json) {
        printJson(created);
        return;
      }
      printLine(
        `Created organization ${created.name} (${created.id}) with project Default (${created.default_project_id}).`,
      );
      if (created.owner_user_id === null) printLine(ownerAdvice(created.id));
    });
}

function registerList(parent: Command): void {
  listCommand(parent, {
    usage: 'list',
    description: 'list the organizations',
    example: 'tds org list --json',
  }).action(async (options: ListOptions) => {
    const organizations = await withData(options, (context) => listOrganizations(context, OPERATOR));
    printRows(
      options,
      organizations,
      'There is no organization.',
      {
        ID: (row) => row.id,
        NAME: (row) => row.name,
        TIER: (row) => String(row.tier),
        CREDIT: (row) => formatDollars(row.credit_micros),
        HELD: (row) => formatDollars(row.held_micros),
        SUSPENDED: (row) => (row.suspended_at_ms === null ? '' : formatTime(row.suspended_at_ms)),
      },
      (row) => ({ ...organizationSummary(row), suspended_at_ms: row.suspended_at_ms }),
    );
  });
}

function registerRename(parent: Command): void {
  jsonCommand(parent, {
    usage: 'rename',
    description: 'give an organization another name',
    example: 'tds org rename "Acme" "Acme Europe"',
  })
    .argument('<org>', 'id or unique name')
    .argument('<name>')
    .action(async (text: string, name: string, options: JsonOptions) => {
      const organization = await withData(options, async (context) =>
        renameOrganization(context, OPERATOR, { organization_id: await organizationId(context, text), name }),
      );
      if (options.json) printJson(organizationSummary(organization));
      else printLine(`${organization.id} is named ${organization.name}.`);
    });
}

function registerCredit(parent: Command): void {
  const credit = jsonCommand(parent, {
    usage: 'credit',
    description:
      'enter a payment that you received by hand: it adds credit, counts as paid and moves the tier',
    example: 'tds org credit "Acme" 25',
  });
  addEntry(credit)
    .argument('<org>', 'id or unique name')
    .argument('<dollars>', 'amount, within the range of the tier unless --force is given', dollars)
    .option('--force', 'enter also an amount that is outside of the range')
    .action(async (text: string, amount_micros: number, options: CreditOptions) => {
      const enter = (context: DataContext, entry_id: string) =>
        adviseForce(async () =>
          creditByHand(context, OPERATOR, {
            organization_id: await organizationId(context, text),
            amount_micros,
            entry_id,
            within_range: options.force !== true,
          }),
        );
      await withEntry(options, enter, (organization) => creditText(organization, options));
    });
}

function registerSuspensions(parent: Command): void {
  for (const { is_suspended, outcome, ...text } of SUSPENSION_COMMANDS) {
    jsonCommand(parent, text)
      .argument('<org>', 'id or unique name')
      .action(async (name: string, options: JsonOptions) => {
        const organization = await withData(options, async (context) =>
          setSuspended(context, OPERATOR, {
            organization_id: await organizationId(context, name),
            is_suspended,
          }),
        );
        if (is_suspended) await askToForgetKeys(options.data);
        if (options.json) {
          const { suspended_at_ms } = organization;
          printJson({ ...organizationSummary(organization), suspended_at_ms });
        } else printLine(`${organization.name} ${outcome}`);
      });
  }
}

function registerTier(parent: Command): void {
  jsonCommand(parent, {
    usage: 'tier',
    description:
      'show the tier and limits of an organization, or set them; "none" puts the tier’s own value back',
    example: 'tds org tier "Acme" --minimum 3 --requests-per-minute 9000',
  })
    .argument('<org>', 'id or unique name')
    .option('--minimum <tier>', 'the tier below which it does not fall', wholeNumberOrNone)
    .option('--requests-per-minute <number>', 'dedicated limit', wholeNumberOrNone)
    .option('--tokens-per-minute <number>', 'dedicated limit', wholeNumberOrNone)
    .option('--questions <number>', 'dedicated limit of questions per request', wholeNumberOrNone)
    .option('--top-up-max <dollars>', 'dedicated limit of one top-up', dollarsOrNone)
    .action(async (text: string, options: TierOptions) => {
      const settings = tierSettings(options);
      const is_change = Object.keys(settings).length > 0;
      const organization = await withData(options, async (context) => {
        const id = await organizationId(context, text);
        return is_change
          ? setTierSettings(context, OPERATOR, id, settings)
          : getOrganization(context, OPERATOR, id);
      });
      if (is_change) await askToForgetKeys(options.data);
      if (options.json) printJson(tierSummary(organization));
      else printTier(organization);
    });
}
