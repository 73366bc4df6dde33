import { resolve } from 'node:path';
import { Argument, type Command, Option } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import { Catalog, DESCRIPTIONS } from '../catalog/catalog.ts';
import {
  addModel,
  addOpenModel,
  closeModel,
  drainUpstream,
  listModelAliases,
  type NewModel,
  type NewSource,
  openModel,
  removeModel,
  removeModelAlias,
  requireAddable,
  setModelAlias,
  setModelPrice,
} from '../catalog/changes.ts';
import { wholeNumberBetween } from '../config/setting.ts';
import { MODEL_SETTINGS, type ModelConfig } from '../config/settings.ts';
import { formatDollars } from '../contract/money.ts';
import { errorMessage } from '../errors/error-message.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { answerDrifts, largestIndex } from '../served-models/answer-drifts.ts';
import {
  type CatalogModel,
  MODEL_KINDS,
  UPSTREAM_PROTOCOLS,
  type UpstreamPool,
  type UpstreamProtocol,
  type UpstreamVocabulary,
} from '../store/catalog-records.ts';
import { STABILITY_INDEX_MAX } from '../tuning/stability-index.ts';
import { readTuning, TuningUnusable } from '../tuning/tuning-file.ts';
import { checkTuning } from './check-tuning.ts';
import { checkUpstreams, checkVocabulary } from './check-upstreams.ts';
import { checkWeights } from './check-weights.ts';
import { type DataContext, type JsonOptions, jsonCommand, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { addSettings, hasFlag } from './command-settings.ts';
import { printJson, printLine, printRows } from './output.ts';
import { type ReloadOptions, reloadModel, unfitAfterReload } from './reload-model.ts';
import { askForModelStates, type ServedModelState } from './reload-socket.ts';
import { answerTimeout, type GivenMembers, upstreamAddress, upstreamMembers } from './upstream-members.ts';
import { dollars, NONE } from './values.ts';

/** The default context of an upstream, for a record with a question. */
const UPSTREAM_CONTEXT_TOKENS = 16_384;
/** More than any model reads. */
const CONTEXT_TOKENS_MAX = 100_000_000;

interface AddOptions extends JsonOptions, ModelConfig {
  readonly weights?: string;
  readonly upstream?: GivenMembers;
  readonly protocol: UpstreamProtocol;
  readonly upstreamModel?: string;
  readonly vocabulary?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly timeout?: number;
  readonly closed?: true;
  readonly description?: string;
  readonly context?: number;
  readonly price?: number;
  readonly tuning?: string;
  readonly organization?: string;
}

/** Returns the model without empty fields: most have no weights of their own, or no checked ones. */
function shown(row: CatalogModel): object {
  const { weights, weights_sha256, profile, upstreams, ...others } = row;
  const { base_id, tuning_sha256, organization_id, ...model } = others;
  return {
    ...model,
    ...(weights === null ? {} : { weights }),
    ...(weights_sha256 === null ? {} : { weights_sha256 }),
    ...(profile === null ? {} : { profile }),
    ...(upstreams === null ? {} : { upstreams }),
    ...(base_id === null ? {} : { base_id, tuning_sha256 }),
    ...(organization_id === null ? {} : { organization_id }),
  };
}

/** Returns the base of a tuned model, and who may ask it; null for other models. */
function formatBase({ base_id, organization_id }: CatalogModel): string | null {
  if (base_id === null) return null;
  return `tuning of ${base_id}${organization_id === null ? '' : `, for ${organization_id}`}`;
}

function formatPrice({ input_price_micros_per_million_tokens: price_micros }: CatalogModel): string {
  return price_micros === null ? '-' : formatDollars(price_micros);
}

function printModel(model: CatalogModel, options: JsonOptions, text: string): void {
  if (options.json) printJson(shown(model));
  else printLine(text);
}

/** Returns the servers as text, with those that are draining marked. */
function formatUpstreams({ addresses, draining, members }: UpstreamPool): string {
  return addresses
    .map((address) => {
      const weight = members?.[address]?.weight;
      const notes = [
        ...(weight === undefined ? [] : [`weight ${weight}`]),
        ...(draining.includes(address) ? ['draining'] : []),
      ];
      return notes.length === 0 ? address : `${address} (${notes.join(', ')})`;
    })
    .join(', ');
}

/** Adds `tds model …`. */
export function registerModels(program: Command): void {
  const parent = program
    .command('model')
    .description('the model catalog; running servers follow it with the next request');

  registerList(parent);
  registerAdd(parent);
  registerReload(parent);
  registerDrain(parent);
  registerChanges(parent);
  registerPrice(parent);
  registerAlias(parent);
}

function registerDrain(parent: Command): void {
  jsonCommand(parent, {
    usage: 'drain',
    description:
      'send no new requests to one of a model’s upstreams; those that it has are finished, and the others answer the next ones',
    example: 'tds model drain kev-4b http://10.0.0.3:8080',
  })
    .argument('<id>')
    .argument('<address>', 'as "tds model list" shows it', upstreamAddress)
    .option('--end', 'send it requests again')
    .action(async (id: string, address: string, options: JsonOptions & { readonly end?: true }) => {
      const is_draining = options.end === undefined;
      const model = await withData(options, (context) =>
        drainUpstream(context, OPERATOR, id, { address, is_draining }),
      );
      const done = is_draining ? 'gets no new requests' : 'gets requests again';
      printModel(model, options, `${address} ${done} for ${id}.`);
    });
}

/** The commands that change one model, and need no more than its id. */
const CHANGE_COMMANDS = [
  {
    usage: 'open',
    description: 'open a model for requests; one that this service has no engine for stays closed',
    example: 'tds model open decision-1',
    change: openModel,
    outcome: 'open',
  },
  {
    usage: 'close',
    description: 'close a model: requests for it get 404 until it is opened again',
    example: 'tds model close decision-1',
    change: closeModel,
    outcome: 'closed',
  },
  {
    usage: 'remove',
    description:
      'take a model and its aliases out of the catalog: requests for it get 404, its usage is kept, and running servers free its memory',
    example: 'tds model remove decision-2',
    change: removeModel,
    outcome: 'removed',
  },
];

function registerChanges(parent: Command): void {
  for (const { change, outcome, ...text } of CHANGE_COMMANDS) {
    jsonCommand(parent, text)
      .argument('<id>')
      .action(async (id: string, options: JsonOptions) => {
        const model = await withData(options, (context) => change(context, OPERATOR, id));
        printModel(model, options, `${id} is ${outcome}.`);
      });
  }
}

function registerPrice(parent: Command): void {
  jsonCommand(parent, {
    usage: 'price',
    description: 'set the price of 1M input tokens; output is never billed',
    example: 'tds model price decision-1 0.50',
  })
    .argument('<id>')
    .argument('<dollars>', 'price of 1M input tokens', dollars)
    .action(async (id: string, price_micros: number, options: JsonOptions) => {
      const model = await withData(options, (context) => setModelPrice(context, OPERATOR, id, price_micros));
      printModel(model, options, `1M input tokens of ${id} cost $${formatPrice(model)}.`);
    });
}

function registerAlias(parent: Command): void {
  jsonCommand(parent, {
    usage: 'alias',
    description:
      'let clients ask for a model by another name, or take that name away; answers name the model',
    example: ['tds model alias decision-latest decision-1', 'tds model alias jev-latest none'],
  })
    .argument('<alias>', 'what clients may send as model')
    .argument('<id>', 'the model that it means, or "none"')
    .action(async (alias: string, id: string, options: JsonOptions) => {
      const model_id = id === NONE ? null : id;
      await withData(options, async (context) => {
        if (model_id === null) await removeModelAlias(context, OPERATOR, alias);
        else await setModelAlias(context, OPERATOR, { alias, model_id });
      });
      if (options.json) printJson({ alias, model_id });
      else printLine(model_id === null ? `${alias} is no alias any more.` : `${alias} means ${model_id}.`);
    });
}

function registerList(parent: Command): void {
  jsonCommand(parent, {
    usage: 'list',
    description:
      'list the models with their aliases, those that are coming soon too, and how they stand in the service on the data directory',
    example: 'tds model list',
  })
    .addHelpText(
      'after',
      '\nState and memory are those of the service that runs here; memory is that of weights, keys and values, and kept prefixes.\n' +
        `Drift is that of a tuned model’s answers of the last seven days: above ${STABILITY_INDEX_MAX} they are others than at its tuning.`,
    )
    .action(async (options: JsonOptions) => {
      const states = (await askForModelStates(options.data)) ?? [];
      const models = await withData(options, async (context) => {
        const aliases = await listModelAliases(context.store);
        const all = await new Catalog(context.store.catalog).list();
        const listed = all.map(async (model) => ({
          ...model,
          served: states.find(({ id }) => id === model.id),
          drift_index: await driftIndexOf(context, model),
          aliases: aliases.filter(({ model_id }) => model_id === model.id).map(({ alias }) => alias),
        }));
        return await Promise.all(listed);
      });
      printRows(options, models, 'There is no model.', LIST_COLUMNS, listDocument);
    });
}

/** Returns null for a tuning that cannot be read: requests tell of that. */
async function driftIndexOf(
  { store: { catalog }, clock }: DataContext,
  { id, tuning_sha256 }: CatalogModel,
): Promise<number | null> {
  if (tuning_sha256 === null) return null;
  const drifts = answerDrifts(
    catalog,
    id,
    async () => readTuning((await catalog.findTuning(id)) ?? '').entries,
    clock.now_ms(),
  );
  return await drifts.then(largestIndex).catch((error: unknown) => {
    if (error instanceof TuningUnusable) return null;
    throw error;
  });
}

/** A model of the list, with its state in the service that runs here. */
interface ListedModel extends CatalogModel {
  readonly served: ServedModelState | undefined;
  readonly drift_index: number | null;
  readonly aliases: readonly string[];
}

const LIST_COLUMNS: Readonly<Record<string, (row: ListedModel) => string>> = {
  ID: (row) => row.id,
  KIND: (row) => row.kind,
  STATUS: (row) => row.status,
  STATE: ({ served: { state, load_error = null } = {} }) =>
    load_error === null ? (state ?? '-') : `${state}: ${load_error}`,
  'MEMORY MB': ({ served: { memory_bytes = null } = {} }) =>
    memory_bytes === null ? '-' : String(Math.ceil(memory_bytes / BYTES_PER_MEGABYTE)),
  'WEIGHTS OR UPSTREAMS': (row) =>
    row.weights ?? formatBase(row) ?? (row.upstreams === null ? '-' : formatUpstreams(row.upstreams)),
  'PROFILE OR PROTOCOL': (row) => row.profile ?? row.upstreams?.protocol ?? '-',
  'CONTEXT TOKENS': (row) => (row.context_tokens === null ? '-' : String(row.context_tokens)),
  'DOLLARS PER 1M INPUT TOKENS': formatPrice,
  DRIFT: (row) => (row.drift_index === null ? '-' : row.drift_index.toFixed(2)),
  ALIASES: (row) => row.aliases.join(', '),
};

function listDocument({ aliases, served, drift_index, ...model }: ListedModel): object {
  return {
    ...shown(model),
    aliases,
    drift_index,
    state: served?.state ?? null,
    load_error: served?.load_error ?? null,
    memory_bytes: served?.memory_bytes ?? null,
  };
}

function registerAdd(parent: Command): void {
  const command = jsonCommand(parent, {
    usage: 'add',
    description:
      'add a model. With --weights or --upstream they are sent a health probe first, and then it is open; without, it is coming soon',
    example: [
      'tds model add decision-2 --weights /var/lib/models/decision-2.gguf --price 0.75',
      'tds model add kev-4b --upstream http://10.0.0.3:8080,http://10.0.0.4:8080 --price 0.75',
      'tds model add kev-4b --upstream http://10.0.0.3:8080,weight=3,http://10.0.0.4:8080,timeout=20,token-file=/etc/tds/b.token --price 0.75',
      'tds model add support-1 --tuning support.tuning --organization Acme',
      'tds model add qwen-4b --upstream http://10.0.0.5:8000 --protocol openai --upstream-model Qwen/Qwen3-4B --vocabulary /var/lib/models/qwen3-4b.gguf --price 0.75',
    ],
  })
    .argument('<id>', 'what clients send as model')
    .addArgument(new Argument('[kind]').choices(MODEL_KINDS).default('decision' satisfies NewModel['kind']))
    .option(
      '--weights <path>',
      'GGUF file, or the first part of a split one, which must stay as it is; or "embedded"',
    )
    .option(
      '--upstream <addresses>',
      'in the place of weights: URLs of the inference servers that answer, with commas between them; ",weight=N" (1 to 100, default 1), ",timeout=SECONDS" and ",token-file=PATH" behind one are its own',
      upstreamMembers,
    )
    .addOption(
      new Option('--protocol <name>', 'what the upstreams speak')
        .choices(UPSTREAM_PROTOCOLS)
        .default('systemone'),
    )
    .option('--upstream-model <name>', 'what the upstreams call the model (default: requests name none)')
    .option(
      '--vocabulary <path>',
      'for --protocol llama-server and openai: GGUF file of the upstreams’ model, or one with its vocabulary only, by which plans are made',
    )
    .option('--token-file <path>', 'file with the bearer token for the upstreams; read again when it changes')
    .option(
      '--ca-file <path>',
      'certificates (PEM) that the upstreams’ are signed by (default: the system’s)',
    )
    .option(
      '--timeout <seconds>',
      'time in which an upstream must answer before another one is asked (default: 60)',
      answerTimeout,
    )
    .option(
      '--tuning <file>',
      'in the place of weights: corrections of "tds tune", for a model whose weights the catalog has; they share its memory',
    )
    .option(
      '--organization <organization>',
      'with --tuning: the only organization (id or name) that sees the model and may ask it',
    )
    .option('--closed', 'keep it closed until "tds model open"')
    .option('--description <text>', 'one sentence for the model list')
    .option(
      '--context <tokens>',
      'how many tokens a record and a question may have together (default: 16,384, or fewer where the model was made for fewer)',
      wholeNumberBetween(1, CONTEXT_TOKENS_MAX),
    )
    .option('--price <dollars>', 'price of 1M input tokens', dollars);
  addSettings(command, MODEL_SETTINGS)
    .addHelpText(
      'after',
      '\n--model is for --tuning: where "tds serve" has it, its weights are those of the default model. A running server loads weights at the first request. Each model of weights has its own memory, and all compute with --threads threads on the same cores; upstreams compute by themselves.',
    )
    .action(async (id: string, kind: NewModel['kind'], options: AddOptions, command: Command) => {
      if (options.tuning === undefined && hasFlag(command, 'model')) {
        throw new CommandFailed('--model goes with --tuning: the weights of a new model are --weights.');
      }
      const model = await withData(options, (context) => add(context, id, kind, options));
      const state = model.status === 'live' ? 'open' : options.closed ? 'closed' : 'coming soon';
      printModel(model, options, `Added ${id}, which is ${state}.`);
    });
}

function registerReload(parent: Command): void {
  const command = jsonCommand(parent, {
    usage: 'reload',
    description:
      'load a model anew while requests go on: those that have begun are answered by the weights before, which are freed after the last of them',
    example: 'tds model reload decision-2 --weights /var/lib/models/decision-2b.gguf',
  })
    .argument('<id>')
    .option(
      '--weights <path>',
      'GGUF file of the new weights (default: the path before, where the file was replaced by moving another there)',
    );
  addSettings(
    command,
    MODEL_SETTINGS.filter((name) => name !== 'model'),
  )
    .addHelpText(
      'after',
      '\nWeights that do not load change nothing. Both sets are in memory for a moment. Never write into a file that is served: move a new one to its place. Without a running server, or for a closed model, the new weights are checked by this command, with the settings above.',
    )
    .action(async (id: string, options: JsonOptions & ReloadOptions) => {
      const { model, is_swapped, unfit } = await withData(options, async (context) => {
        const reloaded = await reloadModel(context, id, options);
        // The reload is done by now: no failure of this look may count as one of it.
        const unfit = await unfitAfterReload(context, reloaded.model).catch((error: unknown) => {
          process.stderr.write(
            `Which tuned models fit the new weights could not be read (${errorMessage(error)}): "tds doctor" says it.\n`,
          );
          return [];
        });
        return { ...reloaded, unfit };
      });
      if (unfit.length > 0) {
        const ids = unfit.map((one) => one.id).join(', ');
        process.stderr.write(
          `Tuned on other weights, so that their tuned questions get 502: ${ids}. Tune again, remove them and add them again.\n`,
        );
      }
      const done = is_swapped
        ? `${id} is answered for by the new weights.`
        : `The weights of ${id} are good, and the next load takes them.`;
      printModel(model, options, done);
    });
}

async function add(
  context: DataContext,
  id: string,
  kind: NewModel['kind'],
  options: AddOptions,
): Promise<CatalogModel> {
  const model: NewModel = {
    id,
    kind,
    description: options.description ?? DESCRIPTIONS[kind],
    context_tokens: options.context ?? null,
    input_price_micros_per_million_tokens: options.price ?? null,
  };
  const { weights: path, upstream: given, tuning } = options;
  if ([path, given, tuning].filter((source) => source !== undefined).length > 1) {
    throw new CommandFailed('Give one of --weights, --upstream and --tuning.');
  }
  if (tuning !== undefined) return await addTuned(context, model, tuning, options);
  if (options.organization !== undefined) throw new CommandFailed('Give --organization with --tuning.');
  const check = checkOf(id, options);
  if (check === null) return await addModel(context, OPERATOR, model);
  if (kind !== 'decision') {
    throw new CommandFailed(`Weights and upstreams answer for decision models only, not for ${id}.`);
  }
  if (options.price === undefined && options.closed === undefined) {
    throw new CommandFailed(`${id} cannot be open without a price: give --price, or add it with --closed.`);
  }
  // First of all, before minutes are spent on the weights.
  await requireAddable(context.store.catalog, model);
  const { source, context_tokens } = await check();
  const checked = { ...model, context_tokens };
  return options.closed
    ? await addModel(context, OPERATOR, checked, source)
    : await addOpenModel(context, OPERATOR, checked, source);
}

/** Adds a model that corrects the answers of another one, at that one's price unless another is given. */
async function addTuned(
  context: DataContext,
  model: NewModel,
  path: string,
  options: AddOptions,
): Promise<CatalogModel> {
  if (model.kind !== 'decision') {
    throw new CommandFailed(`A tuning corrects decision models only, not ${model.id}.`);
  }
  if (options.context !== undefined) {
    throw new CommandFailed('A tuned model reads as many tokens as its base: leave --context away.');
  }
  await requireAddable(context.store.catalog, model);
  const { source, base } = await checkTuning(context, path, options);
  const { context_tokens, input_price_micros_per_million_tokens: base_price } = base;
  const tuned = {
    ...model,
    context_tokens,
    input_price_micros_per_million_tokens: model.input_price_micros_per_million_tokens ?? base_price,
  };
  return options.closed
    ? await addModel(context, OPERATOR, tuned, source)
    : await addOpenModel(context, OPERATOR, tuned, source);
}

/** The weights or upstreams of a new model, and its context in tokens. */
interface CheckedSource {
  readonly source: NewSource;
  readonly context_tokens: number;
}

/** Returns the check of the weights or upstreams; null where neither is given. */
function checkOf(id: string, options: AddOptions): (() => Promise<CheckedSource>) | null {
  const { weights: path, upstream: given } = options;
  if (path !== undefined) return () => checkedWeights(path, options);
  return given === undefined ? null : () => checkedUpstreams(id, given, options);
}

async function checkedWeights(path: string, options: AddOptions): Promise<CheckedSource> {
  const { weights, context_tokens } = await checkWeights(path, options, {
    context_tokens: options.context,
  });
  return { source: weights, context_tokens };
}

/** Checks upstreams; those of a model that stays closed may be down. */
async function checkedUpstreams(
  id: string,
  { addresses, members }: GivenMembers,
  options: AddOptions,
): Promise<CheckedSource> {
  const { protocol, upstreamModel, tokenFile, caFile, timeout, closed } = options;
  const { vocabulary, context_tokens } = await vocabularyFor(options);
  const upstreams: UpstreamPool = {
    protocol,
    addresses,
    draining: [],
    model: upstreamModel ?? null,
    token_file: tokenFile === undefined ? null : resolve(tokenFile),
    ca_file: caFile === undefined ? null : resolve(caFile),
    ...(timeout === undefined ? {} : { answer_ms: timeout }),
    ...(Object.keys(members).length === 0 ? {} : { members }),
    ...(vocabulary === null ? {} : { vocabulary }),
  };
  if (closed === undefined) await checkUpstreams({ id, upstreams, context_tokens }, options);
  return { source: { upstreams }, context_tokens };
}

/** Returns the vocabulary that the protocol needs, and the context of the model in tokens. */
async function vocabularyFor(
  options: AddOptions,
): Promise<{ readonly vocabulary: UpstreamVocabulary | null; readonly context_tokens: number }> {
  const { protocol, vocabulary: path, context } = options;
  if (protocol === 'systemone') {
    if (path === undefined) return { vocabulary: null, context_tokens: context ?? UPSTREAM_CONTEXT_TOKENS };
    throw new CommandFailed(
      'Upstreams of --protocol systemone make their own plans: leave --vocabulary away.',
    );
  }
  if (path !== undefined) return await checkVocabulary(path, options, context);
  throw new CommandFailed(
    `Upstreams of --protocol ${protocol} are sent tokens: give --vocabulary with the GGUF file of their model.`,
  );
}
