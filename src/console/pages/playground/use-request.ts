import { useMemo, useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import type { Mode } from '../../../questions/question.ts';
import { objectIn } from '../object-in.ts';
import { bodyOf, type Draft, draftOf, withNewKeys } from './draft.ts';
import { EXAMPLES, type Example, exampleBody } from './examples.ts';
import type { KeptDraft } from './kept-work.ts';
import { prettyJson } from './pretty-json.ts';

export const MODES = [
  { value: 'fast', label: 'Fast' },
  { value: 'consistent', label: 'Consistent' },
  { value: 'both', label: 'Both' },
] as const;
export type Modes = (typeof MODES)[number]['value'];

const EMPTY_DRAFT: Draft = { record: { kind: 'text', text: '' }, questions: [] };

/** The request that is written, as a form or as JSON, with the model and modes that it is to be asked in. */
export interface WrittenRequest {
  readonly draft: Draft;
  /** The request as text while it is edited as JSON. */
  readonly json: string | null;
  /** Why the form cannot show what is edited as JSON. */
  readonly why_no_form: string | undefined;
  readonly model: string;
  readonly modes: Modes;
  /** The name of the example that was loaded last. */
  readonly example: string | null;
  /** True if it would be lost when another takes its place. */
  readonly is_dirty: boolean;
  /** The body that is sent; null while the JSON is not an object. */
  readonly body: JsonObject<JsonValue> | null;
  readonly setDraft: (draft: Draft) => void;
  readonly setModel: (model: string) => void;
  readonly setModes: (modes: Modes) => void;
  readonly takeJson: (text: string) => void;
  readonly show: (view: 'form' | 'json') => void;
  readonly loadExample: (example: Example) => void;
  /** Puts a body into the form, or into the JSON where the form cannot show it. */
  readonly open: (body: JsonObject<JsonValue>) => void;
}

/** Begins with the draft that was kept, or else with the first example. */
export function useRequest(kept: KeptDraft | undefined, model_ids: readonly string[]): WrittenRequest {
  const [draft, setDraft] = useState(() => (kept === undefined ? firstDraft() : withNewKeys(kept.draft)));
  /** The draft that is lost without harm. */
  const [pristine, setPristine] = useState(kept?.is_dirty === true ? undefined : draft);
  const [json, setJson] = useState<string | null>(kept?.json ?? null);
  const [why_no_form, setWhyNoForm] = useState<string>();
  const [model, setModel] = useState(model_ids.find((id) => id === kept?.model) ?? model_ids[0] ?? '');
  const [modes, setModes] = useState<Modes>(
    MODES.find(({ value }) => value === kept?.modes)?.value ?? 'fast',
  );
  const [example, setExample] = useState(kept === undefined ? (EXAMPLES[0]?.name ?? null) : kept.example);
  const body = useMemo(
    () => (json === null ? bodyOf(draft, { model, mode: modeOf(modes) }) : objectIn(json)),
    [json, draft, model, modes],
  );

  const showDraft = (shown: Draft) => {
    setDraft(shown);
    setPristine(shown);
    setJson(null);
    setWhyNoForm(undefined);
  };

  /** In JSON the text is the request: what is chosen beside it is written into it. */
  const rewrite = (name: 'model' | 'mode', value: string) => {
    if (json !== null && body !== null) setJson(prettyJson(body.with(name, value)));
  };

  return {
    draft,
    json,
    why_no_form,
    model,
    modes,
    example,
    is_dirty: json !== null || draft !== pristine,
    body,
    setDraft,
    setModel: (chosen) => {
      setModel(chosen);
      rewrite('model', chosen);
    },
    setModes: (chosen) => {
      setModes(chosen);
      if (chosen !== 'both') rewrite('mode', chosen);
    },
    takeJson: (text) => {
      setJson(text);
      setWhyNoForm(undefined);
      const written = objectIn(text);
      const written_model = written?.get('model');
      const written_mode = written?.get('mode');
      if (typeof written_model === 'string') setModel(written_model);
      if (modes !== 'both' && (written_mode === 'fast' || written_mode === 'consistent'))
        setModes(written_mode);
    },
    show: (view) => {
      if (view === 'json') {
        setJson(prettyJson(bodyOf(draft, { model, mode: modeOf(modes) })));
        return;
      }
      if (json === null) return;
      const read = body === null ? 'The text is not a JSON object yet.' : draftOf(body);
      if (typeof read === 'string') {
        setWhyNoForm(read);
        return;
      }
      setDraft(read.draft);
      setJson(null);
      setWhyNoForm(undefined);
    },
    loadExample: (chosen) => {
      setExample(chosen.name);
      showDraft(draftOfExample(chosen));
    },
    open: (opened) => {
      const read = draftOf(opened);
      setExample(null);
      if (typeof read === 'string') {
        setJson(prettyJson(opened));
        setWhyNoForm(read);
        return;
      }
      showDraft(read.draft);
      const { model: asked_model, mode: asked_mode } = read.asking;
      if (asked_model !== undefined && model_ids.includes(asked_model)) setModel(asked_model);
      setModes(asked_mode ?? 'fast');
    },
  };
}

/** The mode that the request names; null where it is asked in both. */
export function modeOf(modes: Modes): Mode | null {
  return modes === 'both' ? null : modes;
}

function draftOfExample(example: Example): Draft {
  const read = draftOf(exampleBody(example));
  return typeof read === 'string' ? EMPTY_DRAFT : read.draft;
}

function firstDraft(): Draft {
  const [first] = EXAMPLES;
  return first === undefined ? EMPTY_DRAFT : draftOfExample(first);
}
