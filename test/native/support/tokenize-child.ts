/**
 * Tokenizes texts in a process of its own, which a tokenizer may end: `tokenize-child.ts KIND`, with the models and their
 * texts as JSON on standard input. Prints a line for each model as soon as it is done: its name, and how many tokens each
 * text has, or null where it is refused.
 */
import { PlanRejected } from '../../../native/errors.ts';
import { createAddonTokenizer } from '../../../native/evaluators/addon/addon-tokenizer.ts';
import { llamaTokenizer } from './models.ts';

interface Job {
  readonly name: string;
  readonly model_path: string;
  readonly texts: readonly { readonly part: string; readonly times: number }[];
}

const [kind] = process.argv.slice(2);
const jobs: readonly Job[] = await Bun.stdin.json();
for (const { name, model_path, texts } of jobs) {
  const { tokenizer } =
    kind === 'addon'
      ? { tokenizer: await createAddonTokenizer({ model_path, gpu: false }) }
      : await llamaTokenizer(model_path);
  const counts: (number | null)[] = [];
  for (const { part, times } of texts) {
    try {
      const [tokens = []] = await tokenizer.tokenize([part.repeat(times)]);
      counts.push(tokens.length);
    } catch (error) {
      if (!(error instanceof PlanRejected)) throw error;
      counts.push(null);
    }
  }
  await tokenizer.close();
  console.log(JSON.stringify([name, counts]));
}
