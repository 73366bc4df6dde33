import type { Setup } from '../playground/asking-setup.ts';
import type { KeptWork } from '../playground/kept-work.ts';
import { keyOf } from '../playground/key-choice.tsx';
import { questionChoices } from './questions.ts';
import { newRunKey, type RunSetup } from './run-setup.ts';

/** Returns the choices before anything is chosen. */
export function firstRunSetup(setup: Setup, work: KeptWork): RunSetup {
  const { project_id, key_id } = keyOf(setup, {});
  const [questions = null] = questionChoices(work);
  const [model] = setup.models;
  return {
    ...{ run_key: newRunKey(), questions, model: model?.id ?? '', mode: 'fast' },
    ...{ project_id, key_id: key_id ?? null },
  };
}
