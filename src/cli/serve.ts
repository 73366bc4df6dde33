import type { Command } from 'commander';
import { modelOptions, type ServeConfig, serveOptions } from '../config.ts';
import { type JsonOptions, jsonCommand } from './command.ts';

/** `tds serve` */
export function registerServe(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'serve',
    description: 'answer requests until stopped; an empty data directory is initialised first',
    example: 'tds serve --port 8080 --data ./data',
  });
  command.addHelpText(
    'after',
    '\nPayments by Paddle Billing are set by TDS_PADDLE_API_KEY, TDS_PADDLE_WEBHOOK_SECRET, TDS_PADDLE_PRODUCT_ID\nand TDS_PADDLE_ENVIRONMENT (production or sandbox).',
  );
  for (const option of [...serveOptions(), ...modelOptions()]) command.addOption(option);
  command.action(async (options: JsonOptions & ServeConfig) => {
    // Loaded only here: the model's library and the web framework would slow every other command down.
    const { runServer } = await import('./run-server.ts');
    await runServer(options);
  });
}
