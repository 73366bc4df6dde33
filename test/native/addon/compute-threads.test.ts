import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { computingThreads } from '../../../native/engine.ts';
import { createAddonEvaluator } from '../../../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_MARKERS } from '../support/models.ts';
import { describeAddon, filledPlan } from './support.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

/** Long enough that the event loop rests most of the time. */
const PLAN = filledPlan(1, { prefix: 300, branches: [60, 60] });
const HUNDREDTHS_PER_S = 100;
/** As many as other processes can need of a thousand cores in the time between two looks. */
const MUCH = 50_000;
const [fewest, most] = [1, 2];

/** The number of threads while nothing else needs the machine: the most only where our kernels compute everything. */
async function mostHere(): Promise<number> {
  const status = await addonStatus(false);
  return status.available && status.kernels !== 'none' ? most : fewest;
}

/** The CPU time of this process in hundredths of a second. */
function ownTime(): number {
  const { user, system } = process.cpuUsage();
  return Math.ceil(((user + system) / 1e6) * HUNDREDTHS_PER_S);
}

/**
 * An evaluator that reads the CPU times of the machine in a file. Before each evaluation the file is written: the time
 * of this process, and what other processes need.
 */
async function evaluatorBeside(directory: string, deterministic = false) {
  const model_path = join(directory, 'tiny.gguf');
  const shape = { width: 192, heads: 4, cache_heads: 2, hidden: 160, quantized: true };
  await writeTinyModel(model_path, { ...TINY_MARKERS, shape });
  const cpu_times = join(directory, 'stat');
  const write = (others: number) => Bun.write(cpu_times, `cpu  ${ownTime() + others} 0 0 5000 0 0 0 0 0 0\n`);
  await write(0);
  const options = {
    threads: { fewest, most },
    model_path,
    context_tokens: 512,
    gpu: false as const,
    cpu_times,
    deterministic,
  };
  const evaluator = await createAddonEvaluator(options);
  let others = 0;
  return {
    close: () => evaluator.close(),
    /** Resolves with the plan's logits and the number of threads that computed them. */
    async evaluate(more_for_others: number | 'unknown') {
      if (more_for_others === 'unknown') await Bun.write(cpu_times, 'unknown\n');
      else {
        others += more_for_others;
        await write(others);
      }
      const logits = await evaluator.evaluate(PLAN, { scope: 'a' });
      const { threads } = evaluator.stats();
      expect(evaluator.slowdown()).toBe(threads / fewest);
      return { logits, threads };
    },
  };
}

describeAddon('the threads of a decode', () => {
  test.each([false, true])(
    'are all cores while nothing else needs them, and else all but one, with the same bits (deterministic: %p)',
    async (deterministic) => {
      await using directory = await temporaryDirectory();
      const { evaluate, close } = await evaluatorBeside(directory.path, deterministic);
      const { logits } = await evaluate(0);
      const threadsBeside = async (more_for_others: number) => {
        const answer = await evaluate(more_for_others);
        expect(answer.logits).toEqual(logits);
        return answer.threads;
      };
      const all = await mostHere();
      await eventually(async () => (await threadsBeside(0)) === all);
      await eventually(async () => (await threadsBeside(MUCH)) === fewest);
      await eventually(async () => (await threadsBeside(0)) === all);
      await close();
    },
  );

  test('are all but one where the system does not tell what needs its cores', async () => {
    await using directory = await temporaryDirectory();
    const { evaluate, close } = await evaluatorBeside(directory.path);
    const all = await mostHere();
    await eventually(async () => (await evaluate(0)).threads === all);
    await eventually(async () => (await evaluate('unknown')).threads === fewest);
    await close();
  });

  test('are all but one beside another model that computes', async () => {
    await using directory = await temporaryDirectory();
    await using directory_of_other = await temporaryDirectory();
    const one = await evaluatorBeside(directory.path);
    const other = await evaluatorBeside(directory_of_other.path);
    const all = await mostHere();
    await eventually(async () => {
      const [first, second] = [await one.evaluate(0), await other.evaluate(0)];
      return first.threads === all && second.threads === all;
    });
    // Each would take all cores alone, and starts decodes again and again while the other is in the middle of its own.
    await eventually(async () => {
      const both = await Promise.all([one.evaluate(0), other.evaluate(0)]);
      return both.some(({ threads }) => threads === fewest);
    });
    await Promise.all([one.close(), other.close()]);
  });
});

test.each([
  [undefined, 1, 'linux', { fewest: 1, most: 1 }],
  [undefined, 2, 'linux', { fewest: 1, most: 2 }],
  [0, 16, 'linux', { fewest: 15, most: 16 }],
  [0, 16, 'darwin', { fewest: 15, most: 15 }],
  [3, 16, 'linux', { fewest: 3, most: 3 }],
  // The addon and ggml refuse more.
  [undefined, 1024, 'linux', { fewest: 511, most: 512 }],
] as const)('--threads %p on %p cores of %s', (threads, cores, platform, expected) => {
  expect(computingThreads(threads, cores, platform)).toEqual(expected);
});
