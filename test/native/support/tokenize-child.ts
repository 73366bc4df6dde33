/**
 * Tokenizes texts in a process of its own, which a tokenizer may end: `tokenize-child.ts KIND MODEL`, with the texts as
 * JSON on standard input. Prints how many tokens each has, or null where it is refused.
 */
import { PlanRejected } from '../../../native/errors.ts';
import { createAddonTokenizer } from '../../../native/evaluators/addon/addon-tokenizer.ts';
import { llamaTokenizer } from './models.ts';

const [kind, model_path = ''] = process.argv.slice(2);
const texts: readonly { readonly part: string; readonly times: number }[] = await Bun.stdin.json();
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
console.log(JSON.stringify(counts));
