import { useMemo, useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { objectIn } from '../object-in.ts';
import { bodyOf, type Draft, draftOf, withNewKeys } from './draft.ts';
import { EXAMPLES, type Example, exampleBody } from './examples.ts';
import type { KeptDraft } from './kept-work.ts';
import { prettyJson } from './pretty-json.ts';
import { type Modes, useAsking } from './use-asking.ts';

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
  const { draft, json, ...writing } = useWriting(kept);
  const { model, modes, asking, ...chosen } = useAsking(kept, model_ids);
  const [example, setExample] = useState(kept === undefined ? (EXAMPLES[0]?.name ?? null) : kept.example);
  const body = useMemo(
    () => (json === null ? bodyOf(draft, asking) : objectIn(json)),
    [json, draft, model, modes],
  );

  /** In JSON the text is the request: what is chosen beside it is written into it. */
  const rewrite = (name: 'model' | 'mode', value: string) => {
    if (json !== null && body !== null) writing.setJson(prettyJson(body.with(name, value)));
  };
  const showForm = () => {
    if (json === null) return;
    const read = body === null ? 'The text is not a JSON object yet.' : draftOf(body);
    if (typeof read === 'string') writing.setWhyNoForm(read);
    else writing.showDraft(read.draft);
  };
  const open = (opened: JsonObject<JsonValue>) => {
    const read = draftOf(opened);
    setExample(null);
    if (typeof read === 'string') {
      writing.showText(prettyJson(opened), read);
      return;
    }
    writing.showPristine(read.draft);
    chosen.take(read.asking);
  };

  return {
    draft,
    json,
    why_no_form: writing.why_no_form,
    model,
    modes,
    example,
    is_dirty: writing.is_dirty,
    body,
    setDraft: writing.setDraft,
    setModel: (id) => {
      chosen.setModel(id);
      rewrite('model', id);
    },
    setModes: (some) => {
      chosen.setModes(some);
      if (some !== 'both') rewrite('mode', some);
    },
    takeJson: (text) => {
      writing.showText(text);
      chosen.follow(objectIn(text));
    },
    show: (view) => {
      if (view === 'json') writing.setJson(prettyJson(bodyOf(draft, asking)));
      else showForm();
    },
    loadExample: (loaded) => {
      setExample(loaded.name);
      writing.showPristine(draftOfExample(loaded));
    },
    open,
  };
}

/** The text or draft that is written, and why the form cannot show a text. */
function useWriting(kept: KeptDraft | undefined) {
  const [draft, setDraft] = useState(() => (kept === undefined ? firstDraft() : withNewKeys(kept.draft)));
  /** The draft that is lost without harm. */
  const [pristine, setPristine] = useState(kept?.is_dirty === true ? undefined : draft);
  const [json, setJson] = useState<string | null>(kept?.json ?? null);
  const [why_no_form, setWhyNoForm] = useState<string>();
  const showDraft = (shown: Draft) => {
    setDraft(shown);
    setJson(null);
    setWhyNoForm(undefined);
  };
  return {
    draft,
    json,
    why_no_form,
    is_dirty: json !== null || draft !== pristine,
    setDraft,
    setJson,
    setWhyNoForm,
    showDraft,
    showPristine: (shown: Draft) => {
      showDraft(shown);
      setPristine(shown);
    },
    showText: (text: string, why?: string) => {
      setJson(text);
      setWhyNoForm(why);
    },
  };
}

function draftOfExample(example: Example): Draft {
  const read = draftOf(exampleBody(example));
  return typeof read === 'string' ? EMPTY_DRAFT : read.draft;
}

function firstDraft(): Draft {
  const [first] = EXAMPLES;
  return first === undefined ? EMPTY_DRAFT : draftOfExample(first);
}
