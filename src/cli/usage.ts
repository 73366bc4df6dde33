import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import type { AccountContext } from '../access/context.ts';
import { wholeNumberBetween } from '../config/setting.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OWNER_ONLY_FILE } from '../files/file-permissions.ts';
import { MODES, type Mode } from '../questions/question.ts';
import type { UsageFilter } from '../store/usage-records.ts';
import { dailyUsage, rolledUpUsage } from '../usage/daily.ts';
import { exportUsage } from '../usage/export.ts';
import { latestPrune_ms, pruneUsage } from '../usage/prune.ts';
import { PruneRefused } from '../usage/prune-refused.ts';
import {
  type DataContext,
  type DataOptions,
  dataCommand,
  type JsonOptions,
  jsonCommand,
  withData,
} from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { interruptible } from './interruptible.ts';
import { keyId, organizationId, projectId } from './lookup.ts';
import { printJson, printLine } from './output.ts';
import { time } from './values.ts';
import { writeWholeFile } from './write-whole-file.ts';

interface ExportOptions extends DataOptions {
  readonly from?: number;
  readonly to?: number;
  readonly org?: string;
  readonly project?: string;
  readonly key?: string;
  readonly model?: string;
  readonly mode?: Mode;
  readonly status?: number;
  readonly output?: string;
}

/** Parses an HTTP status. */
const httpStatus = wholeNumberBetween(100, 599, 'Give an HTTP status such as 200.');

/** Returns the filter of the options; without any, all usage is exported. */
async function usageFilter(context: AccountContext, options: ExportOptions): Promise<UsageFilter> {
  const organization_id = options.org === undefined ? undefined : await organizationId(context, options.org);
  return {
    organization_id: organization_id ?? null,
    from_ms: options.from,
    to_ms: options.to,
    model: options.model,
    mode: options.mode,
    status: options.status,
    project_id:
      options.project === undefined ? undefined : await projectId(context, options.project, organization_id),
    api_key_id: options.key === undefined ? undefined : await keyId(context, options.key, organization_id),
  };
}

/** Writes to standard output; a reader that stops early, such as `head`, is not a failure. */
async function writeToStandardOutput(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false });
  } catch (error) {
    if (systemErrorCode(error) !== 'EPIPE') throw error;
  }
}

/** Says that an export ended at its most rows, beside the CSV. */
function noteCut(last_ms: number): void {
  // The end is excluded, and others may have ended in the last row's millisecond.
  const to = new Date(last_ms + 1).toISOString();
  process.stderr.write(
    `There are older requests: "--to ${to}" exports from the last row on, which is there again.\n`,
  );
}

/** Reports the usage that an export lacks, beside the CSV. */
async function noteRolledUp({ store }: AccountContext, filter: UsageFilter): Promise<void> {
  const rolled_up = await rolledUpUsage(store.usage, filter);
  if (rolled_up === undefined) return;
  const { requests, last_day } = rolled_up;
  process.stderr.write(
    `${requests} requests up to ${last_day} were rolled up into daily totals: see "tds usage daily".\n`,
  );
}

function write(lines: AsyncIterable<string>, file: string | undefined): Promise<void> {
  return file === undefined ? writeToStandardOutput(lines) : writeWholeFile(file, lines, OWNER_ONLY_FILE);
}

/** Adds the options that choose the usage and the output. */
function withFilter(command: Command): Command {
  return command
    .option('--from <time>', 'from this UTC date or time on', time)
    .option('--to <time>', 'before this UTC date or time', time)
    .option('--org <org>', 'only of this organization (id or unique name)')
    .option('--project <project>', 'only of this project (id or unique name)')
    .option('--key <key>', 'only of this API key (id or unique name)')
    .option('--model <id>', 'only of this model')
    .addOption(new Option('--mode <mode>', 'only of this mode').choices(MODES))
    .option('--status <status>', 'only with this HTTP status', httpStatus)
    .option('--output <file>', 'write to this file instead of standard output');
}

interface PruneCommandOptions extends JsonOptions {
  readonly before: number;
}

async function prune(context: DataContext, options: PruneCommandOptions): Promise<void> {
  const now_ms = context.clock.now_ms();
  const latest_ms = latestPrune_ms(now_ms);
  if (options.before > latest_ms) {
    throw new CommandFailed(
      `Usage of this UTC month is kept, because spend limits count it: give a time up to ${new Date(latest_ms).toISOString()}.`,
    );
  }
  const { database, store } = context;
  const parts = {
    store,
    continueAudit: async (at_ms: number) => (await database.continueAudit(at_ms)).ok,
  };
  let is_stopped = false;
  try {
    const { requests } = await interruptible((isStopped) =>
      pruneUsage(parts, {
        before_ms: options.before,
        now_ms,
        isStopped: () => {
          is_stopped ||= isStopped();
          return is_stopped;
        },
        onProgress: (progress) => showProgress(progress.requests),
      }),
    );
    if (process.stderr.isTTY) process.stderr.write('\n');
    if (options.json) printJson({ requests, is_stopped });
    else
      printLine(
        `${requests} requests were rolled up into daily totals${is_stopped ? ' before it was stopped, and more are left' : ''}.`,
      );
  } catch (error) {
    if (!(error instanceof PruneRefused)) throw error;
    throw new CommandFailed(`Nothing more was rolled up, because ${error.message}: run "tds audit".`, {
      cause: error,
    });
  }
}

/** Writes one line that overwrites the last one; nothing where standard error is not a terminal. */
function showProgress(requests: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${requests} requests`);
}

/** Adds `tds usage …`. */
export function registerUsage(program: Command): void {
  const parent = program.command('usage').description('metadata of the requests that reached the model');

  withFilter(
    dataCommand(parent, {
      usage: 'export',
      description:
        'export one CSV row a request, newest first, up to 100,000 rows; of older requests "daily" has the totals',
      example: 'tds usage export --org "Acme" --from 2026-01-01 --to 2026-02-01 --output january.csv',
    }),
  ).action((options: ExportOptions) =>
    withData(options, async (context) => {
      const filter = await usageFilter(context, options);
      await write(exportUsage(context.store.usage, filter, { onCut: noteCut }), options.output);
      await noteRolledUp(context, filter);
    }),
  );

  withFilter(
    dataCommand(parent, {
      usage: 'daily',
      description:
        'write the totals of every UTC day as CSV: one row an organization, project, key, model, mode, endpoint and status',
      example: 'tds usage daily --org "Acme" --from 2026-01-01 --to 2026-02-01',
    }),
  ).action((options: ExportOptions) =>
    withData(options, async (context) =>
      write(dailyUsage(context.store.usage, await usageFilter(context, options)), options.output),
    ),
  );

  jsonCommand(parent, {
    usage: 'prune',
    description:
      'replace the rows of older requests, in usage and ledger, by daily totals; balances stay, and the freed space of the file is used again',
    example: 'tds usage prune --before 2026-01-01',
  })
    .requiredOption(
      '--before <time>',
      'requests before this UTC date or time, which is at latest the start of this month',
      time,
    )
    .action((options: PruneCommandOptions) => withData(options, (context) => prune(context, options)));
}
