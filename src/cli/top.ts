import { type Command, Option } from 'commander';
import { METRICS_URL_VARIABLE } from '../config/effective.ts';
import { dataCommand } from './command.ts';
import type { TopOptions } from './run-top.ts';

/** Adds `tds top`. */
export function registerTop(program: Command): void {
  dataCommand(
    program,
    {
      usage: 'top',
      description: 'show throughput, latency, queue, holds, memory and problems of a running service, live',
      example: 'tds top --once --data ./data',
    },
    ['data'],
  )
    .addOption(
      new Option(
        '--url <url>',
        'metrics of the service (default: those of the service that runs on the data directory)',
      ).env(METRICS_URL_VARIABLE),
    )
    .option('--once', 'print one page, of everything since the start of the service, and end')
    .addHelpText('after', '\nThe service needs --metrics-port. q or Ctrl-C ends the page.')
    .action(async (options: TopOptions) => {
      const { runTop } = await import('./run-top.ts');
      await runTop(options);
    });
}
