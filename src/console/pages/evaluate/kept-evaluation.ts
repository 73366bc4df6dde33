import { inDatabase } from '../playground/kept-work.ts';
import { forgetRows, type KeptRows, readKeptRows } from '../rows/kept-rows.ts';
import type { EvaluationSetup } from './setup.ts';

/** The evaluation that the browser keeps of one person in one organization. */
export interface KeptEvaluation extends KeptRows {
  readonly setup: EvaluationSetup;
}

/** Returns the scope of a person's evaluation, whose rows are beside those of their batch. */
export function evaluationScope(scope: string): string {
  return `${scope} evaluation`;
}

/** Reads the evaluation of a scope; null where none is kept. Never rejects. */
export async function readKeptEvaluation(scope: string): Promise<KeptEvaluation | null> {
  const [setup, rows] = await Promise.all([
    inDatabase((stored) => stored.get('evaluations', scope)),
    readKeptRows(scope),
  ]);
  return setup == null || rows === null ? null : { setup, ...rows };
}

/** Keeps what is chosen. Never rejects. */
export async function keepEvaluationSetup(scope: string, setup: EvaluationSetup): Promise<void> {
  await inDatabase((stored) => stored.put('evaluations', setup, scope));
}

/** Forgets the evaluation. Never rejects. */
export async function forgetEvaluation(scope: string): Promise<void> {
  await forgetRows(scope);
  await inDatabase((stored) => stored.delete('evaluations', scope));
}
