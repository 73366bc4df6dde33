import type { Command } from 'commander';
import { formatAudit } from '../store/audit-report.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { printJson, printLine } from './output.ts';

/** Adds `tds audit`. */
export function registerAudit(program: Command): void {
  jsonCommand(program, {
    usage: 'audit',
    description:
      'check the books from the first entry on: balances, holds, charges and usage against the ledger; exit code 1 on a violation',
    example: 'tds audit --data ./data',
  }).action(async (options: JsonOptions) => {
    const report = await withData(options, ({ database }) => database.audit());
    if (options.json) printJson(report);
    else printLine(formatAudit(report).trimEnd());
    if (!report.ok) process.exitCode = 1;
  });
}
