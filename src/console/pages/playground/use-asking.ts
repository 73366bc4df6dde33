import { useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { isMode, type Mode } from '../../../questions/types-and-modes.ts';
import { MODE_OPTIONS } from '../mode-options.ts';
import type { Asking } from './draft.ts';
import type { KeptDraft } from './kept-work.ts';

/** The modes that a request is asked in. */
export type Modes = Mode | 'both';
export const MODE_OR_BOTH_OPTIONS = [...MODE_OPTIONS, { value: 'both', label: 'Both' }] as const;

/** Begins with the model and modes that were kept, or else with the first of each. */
export function useAsking(kept: KeptDraft | undefined, model_ids: readonly string[]) {
  const [model, setModel] = useState(model_ids.find((id) => id === kept?.model) ?? model_ids[0] ?? '');
  const [modes, setModes] = useState<Modes>(
    MODE_OR_BOTH_OPTIONS.find(({ value }) => value === kept?.modes)?.value ?? 'fast',
  );
  return {
    model,
    modes,
    asking: { model, mode: modeOf(modes) },
    setModel,
    setModes,
    /** Follows the names in a text that somebody writes. */
    follow: (written: JsonObject<JsonValue> | null) => {
      const written_model = written?.get('model');
      const written_mode = written?.get('mode');
      if (typeof written_model === 'string') setModel(written_model);
      if (modes !== 'both' && isMode(written_mode)) setModes(written_mode);
    },
    /** Takes the names of a request that is opened, where its model is one of those that can be asked. */
    take: ({ model: named_model, mode: named_mode }: Partial<Asking>) => {
      if (named_model !== undefined && model_ids.includes(named_model)) setModel(named_model);
      setModes(named_mode ?? 'fast');
    },
  };
}

/** The mode that the request names; null where it is asked in both. */
export function modeOf(modes: Modes): Mode | null {
  return modes === 'both' ? null : modes;
}
