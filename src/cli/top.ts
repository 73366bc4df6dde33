import { type Command, Option } from 'commander';
import type { TopOptions } from './run-top.ts';

/** Where `tds serve --metrics-port 9464` on this machine has its metrics. */
const DEFAULT_URL = 'http://127.0.0.1:9464/metrics';

/** `tds top` */
export function registerTop(program: Command): void {
  program
    .command('top')
    .description('show throughput, latency, queue, holds, memory and problems of a running service, live')
    .addOption(
      new Option('--url <url>', 'metrics of the service (its --metrics-port)')
        .env('TDS_METRICS_URL')
        .default(DEFAULT_URL),
    )
    .option('--once', 'print one page, of everything since the start of the service, and end')
    .addHelpText('after', '\nq or Ctrl-C ends it.\n\nExample:\n  $ tds top --once')
    .action(async (options: TopOptions) => {
      const { runTop } = await import('./run-top.ts');
      await runTop(options);
    });
}
