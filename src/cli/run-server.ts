import { DataDirectoryInUse, lockDataDirectory } from '../../db/lock.ts';
import type { EngineFacts } from '../../native/engine.ts';
import { openEngine } from '../../native/open.ts';
import { SetupError } from '../../native/setup-error.ts';
import { systemClock } from '../clock.ts';
import { openOptions, paddleSettings, type ServeConfig } from '../config.ts';
import { PortTaken, type RunningServer, startServer } from '../http/server.ts';
import { randomIdentifiers } from '../identifiers.ts';
import { createLog } from '../ops/log.ts';
import type { CreditContext } from '../payments/credit.ts';
import { paddleProvider } from '../payments/paddle.ts';
import type { PaymentProvider } from '../payments/provider.ts';
import { openService, type Service } from '../service.ts';
import type { JsonOptions } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { initialize } from './initialize.ts';
import { printJson, printLine } from './output.ts';

/** A question that the first answer can be seen with. */
const EXAMPLE_BODY = JSON.stringify({
  model: 'decision-1',
  state: 'Hi, I forgot my password and cannot log in to my account any more. Please help me reset it.',
  questions: {
    login: { type: 'noul', instructions: 'Does the customer have a problem logging in?' },
    topic: {
      type: 'choice',
      instructions: 'What is the message about?',
      criteria: {
        password: 'resetting a password',
        delivery: 'where an order is',
        invoice: 'getting an invoice',
      },
    },
  },
});

/** What evaluates plans, in words. */
const ENGINE_NAMES = {
  addon: 'the native engine',
  llama: 'node-llama-cpp ("tds doctor" says why not by the native engine)',
} as const satisfies Record<EngineFacts['evaluator'], string>;

/** Serves until SIGINT or SIGTERM, as the only server on the data directory. Throws `CommandFailed`. */
export async function runServer(options: JsonOptions & ServeConfig, context: CreditContext): Promise<void> {
  const unlock = claim(options.data);
  try {
    await serve(options, context);
  } finally {
    unlock();
  }
}

async function serve(options: JsonOptions & ServeConfig, context: CreditContext): Promise<void> {
  const stop = stopSignal();
  const log = createLog(options.logLevel);
  const service = openService({
    db: context.db,
    openEngine: () => openEngine(openOptions(options)),
    idle_unload_ms: options.idleUnload * 1_000,
    queue_limit: options.queueLimit,
    evaluation_ms: options.evaluationTimeout * 1_000,
    clock: systemClock,
    identifiers: randomIdentifiers,
    log,
    payment_provider: paymentProvider(),
  });
  try {
    await load(service);
    const server = listen(service, options);
    // Only now: a start that failed would have made a key that nobody was shown.
    const first = initialize(context);
    announce(
      server.address,
      first?.key ?? null,
      service.services.model.engineIfLoaded()?.facts ?? null,
      options.json === true,
    );
    await stop;
    log.info('stopping: finishing the requests in flight');
    await server.stop();
  } finally {
    await service.close();
  }
}

/** Paddle, when its settings are in the environment. */
function paymentProvider(): PaymentProvider | null {
  const settings = paddleSettings(process.env);
  if (typeof settings === 'string') throw new CommandFailed(settings);
  return settings === null ? null : paddleProvider(settings);
}

function claim(directory: string): () => void {
  try {
    return lockDataDirectory(directory);
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error;
    throw new CommandFailed(
      `Another server is running on ${directory}: stop it, or name another directory with --data.`,
      { cause: error },
    );
  }
}

/** Loads the model before the first request, so that weights that cannot be used stop the start. */
async function load(service: Service): Promise<void> {
  try {
    await service.services.model.ready('fast');
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (cause instanceof SetupError) throw new CommandFailed(cause.message, { cause });
    throw error;
  }
}

function listen(service: Service, { host, port }: ServeConfig): RunningServer {
  try {
    return startServer(service.handle, { host, port });
  } catch (error) {
    if (error instanceof PortTaken) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

/** The address, the key while it can still be shown, and one line that asks a real question. */
function announce(
  address: string,
  first_key: string | null,
  engine: EngineFacts | null,
  json: boolean,
): void {
  if (json) {
    printJson({ address, api_key: first_key, engine });
    return;
  }
  printLine(`Typed Decision Service on ${address} (API reference: ${address}/swagger)`);
  if (engine !== null) {
    printLine(`Model: ${engine.profile} on ${engine.device}, evaluated by ${ENGINE_NAMES[engine.evaluator]}`);
    if (engine.missing_gpu !== undefined) printLine(`The GPU is not used: ${engine.missing_gpu}`);
  }
  if (first_key !== null) {
    printLine(`First API key, shown only this once: ${first_key}`);
  }
  printLine('Ask it something:');
  printLine(
    `curl -s ${address}/v1/decisions -H 'Authorization: Bearer ${first_key ?? '<API_KEY>'}' -H 'Content-Type: application/json' -d '${EXAMPLE_BODY}'`,
  );
}

/** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once, as by default. */
function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  return promise;
}
