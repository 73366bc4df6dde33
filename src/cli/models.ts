import { Argument, type Command } from 'commander';
import { Catalog } from '../catalog/catalog.ts';
import { type CatalogModel, MODEL_KINDS } from '../catalog/catalog-records.ts';
import {
  addModel,
  closeModel,
  listModelAliases,
  type NewModel,
  openModel,
  removeModelAlias,
  setModelAlias,
  setModelPrice,
} from '../catalog/changes.ts';
import { formatDollars } from '../money.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { printJson, printLine, printTable } from './output.ts';
import { dollars, NONE, wholeNumber } from './values.ts';

interface AddOptions extends JsonOptions {
  readonly description: string;
  readonly context?: number;
  readonly price?: number;
}

function formatPrice({ input_price_micros_per_million_tokens: price_micros }: CatalogModel): string {
  return price_micros === null ? '-' : formatDollars(price_micros);
}

function printModel(model: CatalogModel, options: JsonOptions, text: string): void {
  if (options.json) printJson(model);
  else printLine(text);
}

/** `tds model …` */
export function registerModels(program: Command): void {
  const parent = program
    .command('model')
    .description('the model catalog; running servers follow it with the next request');

  jsonCommand(parent, {
    usage: 'list',
    description: 'list the models with their aliases, those that are coming soon too',
    example: 'tds model list',
  }).action(async (options: JsonOptions) => {
    const models = await withData(options, async ({ store }) => {
      const aliases = await listModelAliases(store);
      const all = await new Catalog(store.catalog).list();
      return all.map((model) => ({
        ...model,
        aliases: aliases.filter(({ model_id }) => model_id === model.id).map(({ alias }) => alias),
      }));
    });
    if (options.json) {
      printJson(models);
      return;
    }
    printTable(
      ['ID', 'KIND', 'STATUS', 'CONTEXT TOKENS', 'DOLLARS PER 1M INPUT TOKENS', 'ALIASES'],
      models.map((row) => [
        row.id,
        row.kind,
        row.status,
        row.context_tokens === null ? '-' : String(row.context_tokens),
        formatPrice(row),
        row.aliases.join(', '),
      ]),
      'There is no model.',
    );
  });

  jsonCommand(parent, {
    usage: 'add',
    description: 'add a model that is coming soon; clients do not see it before it is opened',
    example: 'tds model add decision-2 decision --description "Answers typed questions." --price 0.75',
  })
    .argument('<id>', 'what clients send as model')
    .addArgument(new Argument('<kind>').choices(MODEL_KINDS))
    .requiredOption('--description <text>', 'one sentence for the model list')
    .option('--context <tokens>', 'how many tokens a record and a question may have together', wholeNumber)
    .option('--price <dollars>', 'price of 1M input tokens', dollars)
    .action(async (id: string, kind: NewModel['kind'], options: AddOptions) => {
      const model = await withData(options, ({ store }) =>
        addModel(store, {
          id,
          kind,
          description: options.description,
          context_tokens: options.context ?? null,
          input_price_micros_per_million_tokens: options.price ?? null,
        }),
      );
      printModel(model, options, `Added ${id}, which is coming soon.`);
    });

  jsonCommand(parent, {
    usage: 'open',
    description: 'open a model for requests; one that this service has no engine for stays closed',
    example: 'tds model open decision-1',
  })
    .argument('<id>')
    .action(async (id: string, options: JsonOptions) => {
      const model = await withData(options, ({ store, clock }) => openModel(store, id, clock.now_ms()));
      printModel(model, options, `${id} is open.`);
    });

  jsonCommand(parent, {
    usage: 'close',
    description: 'close a model: requests for it get 404 until it is opened again',
    example: 'tds model close decision-1',
  })
    .argument('<id>')
    .action(async (id: string, options: JsonOptions) => {
      const model = await withData(options, ({ store }) => closeModel(store, id));
      printModel(model, options, `${id} is closed.`);
    });

  jsonCommand(parent, {
    usage: 'price',
    description: 'set the price of 1M input tokens; output is never billed',
    example: 'tds model price decision-1 0.50',
  })
    .argument('<id>')
    .argument('<dollars>', 'price of 1M input tokens', dollars)
    .action(async (id: string, price_micros: number, options: JsonOptions) => {
      const model = await withData(options, ({ store }) => setModelPrice(store, id, price_micros));
      printModel(model, options, `1M input tokens of ${id} cost $${formatPrice(model)}.`);
    });

  jsonCommand(parent, {
    usage: 'alias',
    description:
      'let clients ask for a model by another name, or take that name away; answers name the model',
    example: 'tds model alias jev-latest decision-1',
  })
    .argument('<alias>', 'what clients may send as model')
    .argument('<id>', 'the model that it means, or "none"')
    .action(async (alias: string, id: string, options: JsonOptions) => {
      const model_id = id === NONE ? null : id;
      await withData(options, async ({ store }) => {
        if (model_id === null) await removeModelAlias(store, alias);
        else await setModelAlias(store, { alias, model_id });
      });
      if (options.json) printJson({ alias, model_id });
      else printLine(model_id === null ? `${alias} is no alias any more.` : `${alias} means ${model_id}.`);
    });
}
