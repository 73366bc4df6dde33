/**
 * Time of one question about a record of so many tokens, read anew each time, and alone at the model.
 *
 *   bun bench/engine-long-records.ts [tokens, default 300,1024,4096,16000] [rounds, default 3] [threads, default 1]
 *
 * With BEFORE=<another checkout> both versions read each record in turn, in processes of their own, so that a busy
 * machine slows both. BEFORE=llama.cpp lets llama.cpp read as many tokens of the same file. The ratio is of the medians
 * of CPU time, which other work changes least.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT_ROOT } from '../src/files/project-root.ts';
import { fiveQuestions } from './support/engine.ts';
import { openLlamaReader } from './support/llama-reader.ts';
import { median, report, rounded } from './support/statistics.ts';

const CHILD = 'child';
const LLAMA = 'llama.cpp';
/** Longer than the longest record. */
const TEXT = 'The parcel with order number 48213 is late, and nobody at the desk answers the phone. '.repeat(
  1_000,
);

interface Reading {
  readonly tokens: number;
  readonly wall_ms: number;
  readonly cpu_ms: number;
}

/** Prepares a record of so many tokens. Resolves with their exact number, and with what reads it. */
type Prepare = (
  tokens: number,
) => Promise<{ readonly tokens: number; readonly read: () => Promise<unknown> }>;

/** Reads with the engine of a checkout. */
async function engineOf(root: string, threads: number): Promise<Prepare> {
  const { openEngine }: typeof import('../native/engine.ts') = await import(join(root, 'native/engine.ts'));
  const engine = await openEngine({ evaluator: 'addon', gpu: false, threads });
  const question = fiveQuestions().questions.slice(0, 1);
  const tokens_per_character =
    (await engine.plan({ state: TEXT.slice(0, 10_000), questions: question, mode: 'fast' })).input_tokens /
    10_000;
  let scopes = 0;
  return async (tokens) => {
    const state = TEXT.slice(0, Math.round(tokens / tokens_per_character));
    const plan = await engine.plan({ state, questions: question, mode: 'fast' });
    return {
      tokens: plan.input_tokens,
      read: () => engine.evaluate(plan, { scope: `record ${scopes++}` }),
    };
  };
}

/** Reads with llama.cpp alone. */
async function llamaCpp(threads: number): Promise<Prepare> {
  const llama = await openLlamaReader(threads, 16_384);
  return (count) => {
    const tokens = llama.tokens(TEXT, count);
    return Promise.resolve({ tokens: tokens.length, read: () => llama.read(tokens) });
  };
}

/** Reads the records that the parent asks for. */
async function serve(reader: string, threads: number): Promise<void> {
  const prepare = reader === LLAMA ? await llamaCpp(threads) : await engineOf(reader, threads);
  process.on('message', async (wanted: number) => {
    const { tokens, read } = await prepare(wanted);
    const cpu_before = process.cpuUsage();
    const before_ms = performance.now();
    await read();
    const { user, system } = process.cpuUsage(cpu_before);
    const wall_ms = performance.now() - before_ms;
    process.send?.({ tokens, wall_ms, cpu_ms: (user + system) / 1_000 });
  });
  process.send?.('open');
}

/** A process that reads records. */
async function reader(root: string, threads: number) {
  let next = Promise.withResolvers<Reading>();
  const opened = Promise.withResolvers<void>();
  const process_of_it = Bun.spawn(['bun', import.meta.path, CHILD, root, String(threads)], {
    ipc: (message: 'open' | Reading) => (message === 'open' ? opened.resolve() : next.resolve(message)),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await opened.promise;
  return {
    read(tokens: number): Promise<Reading> {
      next = Promise.withResolvers<Reading>();
      process_of_it.send(tokens);
      return next.promise;
    },
    close: () => process_of_it.kill(),
  };
}

function medians(readings: readonly Reading[]) {
  return {
    wall_ms: median(readings.map(({ wall_ms }) => wall_ms)),
    cpu_ms: median(readings.map(({ cpu_ms }) => cpu_ms)),
  };
}

async function compare(sizes: readonly number[], rounds: number, threads: number): Promise<void> {
  const { BEFORE } = process.env;
  const after = await reader(PROJECT_ROOT, threads);
  const before = BEFORE === undefined ? undefined : await reader(BEFORE, threads);
  for (const size of sizes) {
    const readings: Reading[] = [];
    const readings_before: Reading[] = [];
    for (let round = 0; round < rounds; round++) {
      if (before !== undefined) readings_before.push(await before.read(size));
      readings.push(await after.read(size));
    }
    const now = medians(readings);
    const then = medians(readings_before);
    report({
      bench: 'engine-long-records',
      tokens: readings[0]?.tokens,
      rounds,
      threads,
      wall_ms: rounded(now.wall_ms),
      cpu_ms: rounded(now.cpu_ms),
      ...(before === undefined
        ? {}
        : {
            before_wall_ms: rounded(then.wall_ms),
            before_cpu_ms: rounded(then.cpu_ms),
            to_before: rounded(now.cpu_ms / then.cpu_ms),
          }),
    });
  }
  after.close();
  before?.close();
}

const { positionals } = parseArgs({ allowPositionals: true });
if (positionals[0] === CHILD) await serve(positionals[1] ?? PROJECT_ROOT, Number(positionals[2] ?? 1));
else {
  const [sizes = '300,1024,4096,16000', rounds = '3', threads = '1'] = positionals;
  await compare(sizes.split(',').map(Number), Number(rounds), Number(threads));
  process.exit(0);
}
