import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { computingThreads } from '../../../native/engine.ts';
import { createAddonEvaluator } from '../../../native/evaluators/addon/addon-evaluator.ts';
import { eventually } from '../../support/eventually.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_MARKERS, temporaryDirectory } from '../support/models.ts';
import { describeAddon, filledPlan } from './support.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

const PLAN = filledPlan(1, { prefix: 40, branches: [9, 20] });
const { fewest, most } = computingThreads(undefined);

/** An evaluator that chooses its threads by a file of CPU times, whose busy time is so many hundredths of a second. */
async function evaluatorBeside(directory: string) {
  const model_path = join(directory, 'tiny.gguf');
  const shape = { width: 192, heads: 4, cache_heads: 2, hidden: 160, quantized: true };
  await writeTinyModel(model_path, { ...TINY_MARKERS, shape });
  const cpu_times = join(directory, 'stat');
  const write = (busy: number | string) => Bun.write(cpu_times, `cpu  ${busy} 0 0 5000 0 0 0 0 0 0\n`);
  await write(0);
  const evaluator = await createAddonEvaluator({ model_path, context_tokens: 512, gpu: false, cpu_times });
  return {
    write,
    close: () => evaluator.close(),
    /** Resolves with the plan's logits and the number of threads that computed them. */
    async evaluate() {
      const logits = await evaluator.evaluate(PLAN, { scope: 'a' });
      return { logits, threads: evaluator.stats().threads };
    },
  };
}

describeAddon('the threads of a decode', () => {
  test('are all cores while nothing else needs them, and else all but one, with the same bits', async () => {
    await using directory = await temporaryDirectory();
    const { write, evaluate, close } = await evaluatorBeside(directory.path);
    const { logits } = await evaluate();
    const evaluated = async () => {
      const answer = await evaluate();
      expect(answer.logits).toEqual(logits);
      return answer.threads;
    };
    await eventually(async () => (await evaluated()) === most);
    let busy = 0;
    await eventually(async () => {
      busy += 100_000;
      await write(busy);
      return (await evaluated()) === fewest;
    });
    await eventually(async () => (await evaluated()) === most);
    await close();
  });

  test('are all but one where the system does not tell what needs its cores', async () => {
    await using directory = await temporaryDirectory();
    const { write, evaluate, close } = await evaluatorBeside(directory.path);
    await eventually(async () => (await evaluate()).threads === most);
    await write('unknown');
    await eventually(async () => (await evaluate()).threads === fewest);
    await close();
  });
});

test.each([
  [undefined, 1, { fewest: 1, most: 1 }],
  [undefined, 2, { fewest: 1, most: 2 }],
  [0, 16, { fewest: 15, most: 16 }],
  [3, 16, { fewest: 3, most: 3 }],
])('--threads %p on %p cores', (threads, cores, expected) => {
  expect(computingThreads(threads, cores)).toEqual(expected);
});
