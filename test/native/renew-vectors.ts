/**
 * Writes the scores of the embedded weights, widened to 32 bits, into the pinned vectors: `bun run vectors`, after new
 * weights. Token ids stay as they are, because they belong to the profile.
 */
import { markersV1 } from '../../native/plan/markers-v1.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { llamaTokenizer, loadOnCpu } from './support/models.ts';
import { CONTEXT_TOKENS, scoresOf, VECTORS, VECTORS_FILE } from './support/vectors.ts';
import { widened } from './support/widen.ts';

const DECIMALS = 5;

const { evaluator } = await loadOnCpu(await widened(await verifyWeights(EMBEDDED_WEIGHTS)), {
  context_tokens: CONTEXT_TOKENS,
});
const { tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS);
const profile = markersV1(tokenizer);
const lines: string[] = [];
for (const vector of VECTORS) {
  const scores = (await scoresOf(vector, profile, evaluator)).values();
  const renewed = vector.plans.map(({ prefix, branches }) => ({
    prefix,
    branches: branches.map((branch) => ({
      ...branch,
      scores: (scores.next().value ?? []).map((score) => Number(score.toFixed(DECIMALS))),
    })),
  }));
  lines.push(JSON.stringify({ ...vector, plans: renewed }));
}
await evaluator.close();
await tokenizer.close();
await Bun.write(VECTORS_FILE, `${lines.join('\n')}\n`);
