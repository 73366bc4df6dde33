import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { AccountContext } from '../accounts/context.ts';
import { exportUsage, type UsageFilter } from '../usage/export.ts';
import { type DataOptions, dataCommand, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { keyId, organizationId, projectId } from './lookup.ts';
import { time } from './values.ts';

interface ExportOptions extends DataOptions {
  readonly from?: number;
  readonly to?: number;
  readonly org?: string;
  readonly project?: string;
  readonly key?: string;
  readonly output?: string;
}

/** What is exported: of the named organization, project and key, or of everything that the operator has. */
function usageFilter(context: AccountContext, options: ExportOptions): UsageFilter {
  const organization_id = options.org === undefined ? undefined : organizationId(context, options.org);
  return {
    organization_id: organization_id ?? null,
    from_ms: options.from,
    to_ms: options.to,
    project_id:
      options.project === undefined ? undefined : projectId(context, options.project, organization_id),
    api_key_id: options.key === undefined ? undefined : keyId(context, options.key, organization_id),
  };
}

function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error;
}

/** Writes to standard output; a reader that stops early, such as `head`, is no failure. */
async function writeToStandardOutput(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false });
  } catch (error) {
    if (!(isErrno(error) && error.code === 'EPIPE')) throw error;
  }
}

/** Writes a file that appears only when it is whole. */
async function writeToFile(lines: AsyncIterable<string>, file: string): Promise<void> {
  const partial = `${file}.${randomUUID()}.partial`;
  try {
    await pipeline(Readable.from(lines), createWriteStream(partial, { flags: 'wx', mode: 0o600 }));
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    if (!isErrno(error) || error.syscall === undefined) throw error;
    throw new CommandFailed(`${file} cannot be written (${error.code}): name another file with --output.`, {
      cause: error,
    });
  }
}

/** `tds usage …` */
export function registerUsage(program: Command): void {
  const parent = program.command('usage').description('metadata of the requests that reached the model');

  dataCommand(parent, {
    usage: 'export',
    description: 'export one CSV row a request, newest first, up to 100,000 rows',
    example: 'tds usage export --org "Acme" --from 2026-01-01 --to 2026-02-01 --output january.csv',
  })
    .option('--from <time>', 'from this UTC date or time on', time)
    .option('--to <time>', 'before this UTC date or time', time)
    .option('--org <org>', 'only of this organization (id or unique name)')
    .option('--project <project>', 'only of this project (id or unique name)')
    .option('--key <key>', 'only of this API key (id or unique name)')
    .option('--output <file>', 'write to this file instead of standard output')
    .action((options: ExportOptions) =>
      withData(options, (context) => {
        const lines = exportUsage(context.db, usageFilter(context, options));
        return options.output === undefined
          ? writeToStandardOutput(lines)
          : writeToFile(lines, options.output);
      }),
    );
}
