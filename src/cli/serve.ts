import type { Command } from 'commander';
import { modelOptions, type ServeConfig, serveOptions } from '../config.ts';
import { DESCRIPTORS_MIN, descriptorLimit } from '../http/file-descriptors.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { descriptorsAdvice } from './machine-findings.ts';

/** `tds serve` */
export function registerServe(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'serve',
    description:
      'answer requests until stopped; with --init or on a terminal, an empty data directory is filled first',
    example: 'tds serve --init --port 8080 --data ./data',
  });
  command.addHelpText(
    'after',
    '\nPayments by Paddle Billing are set by TDS_PADDLE_API_KEY, TDS_PADDLE_WEBHOOK_SECRET, TDS_PADDLE_PRODUCT_ID\nand TDS_PADDLE_ENVIRONMENT (production or sandbox).',
  );
  for (const option of [...serveOptions(), ...modelOptions()]) command.addOption(option);
  command.action(async (options: JsonOptions & ServeConfig) => {
    if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
      command.error('error: --tls-cert and --tls-key go together: give both or neither.');
    }
    const descriptors = descriptorLimit();
    // Before anything else is loaded: that would fail with an error of its own.
    if (descriptors < DESCRIPTORS_MIN) throw new CommandFailed(descriptorsAdvice(descriptors));
    // A person sees what happens. A service manager's volume may not be mounted, and must not be replaced in silence.
    const may_initialize = options.init === true || (process.stdin.isTTY && process.stdout.isTTY);
    // Loaded only here: the model's library and the web framework would slow every other command down.
    const { runServer } = await import('./run-server.ts');
    await runServer(options, { may_initialize });
  });
}
