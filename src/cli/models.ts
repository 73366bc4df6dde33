import type { Command } from 'commander';
import { Catalog } from '../catalog/catalog.ts';
import { formatDollars } from '../money.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { printJson, printTable } from './output.ts';

/** `tds model …` */
export function registerModels(program: Command): void {
  const parent = program.command('model').description('the model catalog');

  jsonCommand(parent, {
    usage: 'list',
    description: 'list the models, those that are coming soon too',
    example: 'tds model list',
  }).action(async (options: JsonOptions) => {
    const models = await withData(options, ({ db }) => new Catalog(db).list());
    if (options.json) {
      printJson(models);
      return;
    }
    printTable(
      ['ID', 'KIND', 'STATUS', 'CONTEXT TOKENS', 'DOLLARS PER 1M INPUT TOKENS'],
      models.map((row) => [
        row.id,
        row.kind,
        row.status,
        row.context_tokens === null ? '-' : String(row.context_tokens),
        row.input_price_micros_per_million_tokens === null
          ? '-'
          : formatDollars(row.input_price_micros_per_million_tokens),
      ]),
      'There is no model.',
    );
  });
}
