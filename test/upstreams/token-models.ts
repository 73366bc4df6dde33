import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { DecisionInput, ScoringPlanner } from '../../native/engine.ts';
import { verifyWeights } from '../../native/weights.ts';
import type { UpstreamPool, UpstreamProtocol } from '../../src/store/catalog-records.ts';
import { MARKER_CONTROL } from '../native/support/models.ts';

/** The embedded model's own control tokens, by which `markers-v1` knows it. */
const MARKERS = MARKER_CONTROL.slice(3);

/**
 * Writes the parts of a model with other names for those control tokens: the same weights, which `codes-v1` asks.
 * Returns the first part.
 */
export async function withoutMarkers(first: string, directory: string): Promise<string> {
  for (const part of (await verifyWeights(first)).parts) {
    const bytes = await readFile(part);
    for (const marker of MARKERS) {
      const name = Buffer.from(marker);
      const other = Buffer.from(marker.toUpperCase());
      for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at)) bytes.set(other, at);
    }
    await writeFile(join(directory, basename(part)), bytes);
  }
  return join(directory, basename(first));
}

/** A pool of servers that are sent tokens of this vocabulary. */
export function tokenPool(
  protocol: UpstreamProtocol,
  addresses: readonly string[],
  path: string,
  { vocabulary_sha256: sha256, profile }: Pick<ScoringPlanner, 'vocabulary_sha256' | 'profile'>,
): UpstreamPool {
  return {
    protocol,
    addresses,
    draining: [],
    model: null,
    token_file: null,
    ca_file: null,
    vocabulary: { path, sha256, profile },
  };
}

/** Every question's probabilities, one list after the other, from scores. */
export function probabilitiesOf(scores: readonly (readonly number[])[]): readonly number[] {
  return scores.flatMap((own) => {
    // A noul's only score is the log-odds of yes.
    const logits = own.length === 1 ? [...own, 0] : own;
    const highest = Math.max(...logits);
    const weights = logits.map((logit) => Math.exp(logit - highest));
    const sum = weights.reduce((left, right) => left + right, 0);
    return weights.map((weight) => weight / sum);
  });
}

/** The largest distance of two lists of probabilities. */
export function distanceOf(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length) throw new Error('there are not as many probabilities');
  return Math.max(...one.map((probability, index) => Math.abs(probability - (other[index] ?? Number.NaN))));
}

/** A request of all types, with so many options. */
export function requestOf(mode: DecisionInput['mode'], options: number): DecisionInput {
  return {
    state: 'The parcel of order 8812 came late, and the box was open. I want my money back.',
    questions: [
      { type: 'noul', instructions: 'Is a refund wanted?', yes: undefined, no: undefined },
      { type: 'noul', instructions: 'Is it about a phone?', yes: 'a mobile phone', no: 'anything else' },
      {
        type: 'choice',
        instructions: 'Who should answer?',
        options: Array.from({ length: options }, (_, index) => ({
          id: `t${index}`,
          description: index === 1 ? 'handles parcels that came late' : null,
        })),
      },
      { type: 'score', instructions: 'How urgent is it?', levels: ['not at all', 'soon', 'now'] },
    ],
    mode,
  };
}
