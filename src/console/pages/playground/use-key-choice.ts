import { useState } from 'preact/hooks';
import type { Setup } from './asking-setup.ts';
import type { KeptDraft } from './kept-work.ts';
import { keyOf } from './key-choice.tsx';

export type ChosenKey = ReturnType<typeof useKeyChoice>;

/** Begins with the project and key that were kept, or else with the first that can ask. */
export function useKeyChoice(setup: Setup, kept: KeptDraft | undefined) {
  const [project_id, setProject] = useState(kept?.project_id);
  const [key_id, setKey] = useState(kept?.key_id ?? undefined);
  return { ...keyOf(setup, { project_id, key_id }), setProject, setKey };
}
