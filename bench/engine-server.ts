/**
 * Time of five questions about a record of 300 tokens through the engine ÷ the time through llama-server. llama-server
 * gets five `/completion` calls at once in five slots, each with one token to predict and the prompt cache on. The
 * target is at most 0.5.
 *
 *   LLAMA_SERVER=<path of a llama-server> bun bench/engine-server.ts [rounds, default 9]
 */
import { EMBEDDED_WEIGHTS, openEngine } from '../native/engine.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const program = process.env.LLAMA_SERVER;
if (program === undefined) throw new Error('LLAMA_SERVER must be the path of a llama-server.');
const rounds = Number(process.argv[2] ?? 9);
const PORT = 18_734;
const SLOTS = 5;

const server = Bun.spawn(
  [
    program,
    ...['--model', EMBEDDED_WEIGHTS, '--port', String(PORT), '--parallel', String(SLOTS)],
    ...['--threads', String(THREADS), '--threads-batch', String(THREADS), '--flash-attn', 'on'],
    ...['--ctx-size', '8192', '--kv-unified', '--n-gpu-layers', '0'],
  ],
  { stdout: 'ignore', stderr: 'ignore' },
);
const address = `http://127.0.0.1:${PORT}`;

async function serverIsReady(): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    const answer = await fetch(`${address}/health`).catch(() => undefined);
    if (answer?.ok) return;
    await Bun.sleep(200);
  }
  throw new Error('llama-server did not start.');
}

async function complete(prompt: readonly number[]): Promise<void> {
  const answer = await fetch(`${address}/completion`, {
    method: 'POST',
    body: JSON.stringify({ prompt, n_predict: 1, n_probs: 20, cache_prompt: true, temperature: 0 }),
  });
  if (!answer.ok) throw new Error(`llama-server answered ${answer.status}: ${await answer.text()}`);
  await answer.json();
}

const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
try {
  await serverIsReady();
  const five = fiveQuestions();
  let request = 0;
  const next = async () => {
    // The record is new to both.
    const input = { ...five, state: `${request++} ${five.state}` };
    return await engine.plan(input);
  };
  const times = await alternating(rounds, {
    engine: async () => {
      await engine.evaluate(await next(), { scope: 'bench' });
    },
    server: async () => {
      const { plans } = await next();
      const [plan] = plans;
      await Promise.all(
        (plan?.branches ?? []).map(({ tokens }) => complete([...(plan?.prefix ?? []), ...tokens])),
      );
    },
  });
  report({
    bench: 'engine-server',
    threads: THREADS,
    slots: SLOTS,
    rounds,
    engine_ms: rounded(times('engine').wall_ms),
    server_ms: rounded(times('server').wall_ms),
    time_ratio: rounded(times('engine').wall_ms / times('server').wall_ms),
  });
} finally {
  await engine.close();
  server.kill();
  await server.exited;
}
