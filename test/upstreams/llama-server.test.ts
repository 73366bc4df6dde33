import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DecisionEngine,
  type DecisionInput,
  EMBEDDED_WEIGHTS,
  openEngine,
  openScoringPlanner,
} from '../../native/engine.ts';
import { verifyWeights } from '../../native/weights.ts';
import { ModelUnavailable } from '../../src/served-models/model-answerer.ts';
import type { UpstreamProtocol } from '../../src/store/catalog-records.ts';
import { UpstreamModel } from '../../src/upstreams/upstream-model.ts';
import { VECTORS, vectorInput } from '../native/support/vectors.ts';
import { widened } from '../native/support/widen.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { llamaServerProgram, type RunningLlamaServer, startLlamaServer } from './llama-server-process.ts';
import { distanceOf, probabilitiesOf, requestOf, tokenPool, withoutMarkers } from './token-models.ts';

setDefaultTimeout(300_000);

const CONTEXT_TOKENS = 1_024;
/**
 * As between our own evaluators. The weights are widened to 32 bits, because 8-bit weights round activations too, and
 * then any other order of additions shows in an answer.
 */
const TOLERANCE = 1e-3;

const program = llamaServerProgram();
if (program === undefined) {
  console.log(
    'SKIPPED: the parity with llama-server was not tested: build it by bench/build-llama-server.ts.',
  );
}

/** A model of a file that llama-server answers for, and the same file in this process. */
interface Pair extends AsyncDisposable {
  readonly engine: DecisionEngine;
  readonly upstream: UpstreamModel;
  readonly problems: readonly unknown[];
  /** Asked by another protocol at the same address. */
  readonly by: (protocol: UpstreamProtocol) => UpstreamModel;
}

async function openPair(path: string): Promise<Pair> {
  const planner = await openScoringPlanner({ model_path: path, gpu: false });
  await planner.close();
  const engine = await openEngine({
    model_path: path,
    gpu: false,
    threads: 1,
    context_tokens: CONTEXT_TOKENS,
    calibration: 'none',
  });
  const server: RunningLlamaServer = await startLlamaServer(program ?? '', path, [
    ...['--ctx-size', String(2 * (CONTEXT_TOKENS + 1)), '--parallel', '2'],
  ]);
  const problems: unknown[] = [];
  const by = (protocol: UpstreamProtocol) =>
    new UpstreamModel(
      {
        id: 'model',
        context_tokens: CONTEXT_TOKENS,
        input_price_micros_per_million_tokens: 1,
        upstreams: tokenPool(protocol, [server.address], path, planner),
      },
      { now_ms: () => performance.now(), onProblem: (error) => problems.push(error) },
    );
  const upstream = by('llama-server');
  return {
    engine,
    upstream,
    problems,
    by,
    async [Symbol.asyncDispose]() {
      await upstream.close();
      await engine.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function distance({ engine, upstream }: Pair, input: DecisionInput): Promise<number> {
  const plan = await engine.plan(input);
  const ours = await engine.evaluate(plan, { scope: 'test' });
  const theirs = await upstream.answer(await upstream.plan(input), { scope: 'test' });
  expect(theirs.input_tokens).toBe(plan.input_tokens);
  return distanceOf(probabilitiesOf(ours), probabilitiesOf(theirs.scores));
}

describe.skipIf(program === undefined)('llama-server answers as the engine does on the same file', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  const pairs = new Map<string, Pair>();
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const wide = await widened(await verifyWeights(EMBEDDED_WEIGHTS));
    const folder = join(directory.path, 'codes');
    await mkdir(folder);
    pairs.set('codes-v1', await openPair(await withoutMarkers(wide, folder)));
    pairs.set('markers-v1', await openPair(wide));
  });
  afterAll(async () => {
    for (const pair of pairs.values()) await pair[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
  const pairOf = (name: string): Pair => {
    const pair = pairs.get(name);
    if (pair === undefined) throw new Error(`there is no ${name}`);
    return pair;
  };

  for (const [profile, vectors] of [
    ['codes-v1', VECTORS.slice(0, 4)],
    // A call for each option.
    ['markers-v1', VECTORS.slice(0, 2)],
  ] as const) {
    test.each(vectors.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
      `${profile}: %s`,
      async (_, vector) => {
        const pair = pairOf(profile);
        expect(pair.upstream.profile).toStartWith(profile);
        expect(await distance(pair, vectorInput(vector))).toBeLessThanOrEqual(TOLERANCE);
      },
    );
  }

  test('codes-v1: a question with many options, of which most are unlikely', async () => {
    for (const mode of ['fast', 'consistent'] as const) {
      expect(await distance(pairOf('codes-v1'), requestOf(mode, 12))).toBeLessThanOrEqual(TOLERANCE);
    }
  });

  test('nothing went wrong on the way', () => {
    expect([...pairs.values()].map(({ problems }) => problems)).toEqual([[], []]);
  });

  test('its own /v1/completions, which returns the likeliest tokens only, is refused as openai', async () => {
    const pair = pairOf('codes-v1');
    const openai = pair.by('openai');
    expect(await openai.load().catch((error: unknown) => error)).toBeInstanceOf(ModelUnavailable);
    expect(openai.status().load_error).toEndWith(
      'It does not return the probabilities of the wanted tokens.',
    );
    await openai.close();
  });
});
