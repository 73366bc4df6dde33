import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isJsonObject, type JsonObject, type JsonValue, jsonValueOf } from '../../../json/json-value.ts';
import { readJson } from '../../../json/read-json.ts';
import type { Mode } from '../../../questions/question.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Select, TextArea } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { formatMoney, formatNumber } from '../format.ts';
import { organizationPath } from '../page.ts';
import { Code } from './code.tsx';
import { bodyOf, complaintsAbout, type Draft, draftOf } from './draft.ts';
import { EXAMPLES, type Example } from './examples.ts';
import { prettyJson } from './pretty-json.ts';
import { THRESHOLD_DEFAULT } from './question-fields.tsx';
import { QuestionsEditor } from './questions.tsx';
import { RecordEditor } from './record.tsx';
import { recordedAnswers } from './recorded-answers.ts';
import { CreditLink, Results } from './results.tsx';
import { useRuns } from './use-runs.ts';

/** The facts of the organization that a request needs. */
export interface Setup {
  readonly keys: readonly { readonly id: string; readonly name: string; readonly project_id: string }[];
  readonly projects: readonly { readonly id: string; readonly name: string }[];
  readonly models: readonly {
    readonly id: string;
    readonly context_tokens: number;
    readonly input_price_micros_per_million_tokens: number;
  }[];
  /** True if the organization has credit, and a tier with API access. */
  readonly can_pay: boolean;
}

const MODES = [
  { value: 'fast', label: 'Fast' },
  { value: 'consistent', label: 'Consistent' },
  { value: 'both', label: 'Both' },
] as const;
type Modes = (typeof MODES)[number]['value'];

/** As in `style.css`. */
const SIDE_BY_SIDE = '(width >= 960px)';

const VIEWS = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

/** The model and mode of the recorded answers. */
const RECORDED_ASKING = { model: 'decision-1', mode: 'fast' } as const;

const EMPTY_DRAFT: Draft = { record: { kind: 'text', text: '' }, questions: [] };

function draftOfExample({ state, questions }: Example): Draft {
  const read = draftOf(jsonValueOf({ state, questions }));
  return typeof read === 'string' ? EMPTY_DRAFT : read.draft;
}

function firstDraft(): Draft {
  const [first] = EXAMPLES;
  return first === undefined ? EMPTY_DRAFT : draftOfExample(first);
}

/** The request on one side, its answers on the other. */
export function Workbench({
  organization_id,
  setup,
}: {
  readonly organization_id: string;
  readonly setup: Setup;
}) {
  const { keys, projects, models, can_pay } = setup;
  const asked_projects = projects.filter(({ id }) => keys.some(({ project_id }) => project_id === id));
  const [project_id, setProject] = useState(asked_projects[0]?.id ?? projects[0]?.id ?? '');
  const keys_of_project = keys.filter((key) => key.project_id === project_id);
  const [chosen_key, setKey] = useState<string>();
  const key_id = (keys_of_project.find(({ id }) => id === chosen_key) ?? keys_of_project[0])?.id;

  const [draft, setDraft] = useState(firstDraft);
  /** The draft that an example may replace without a question. */
  const [pristine, setPristine] = useState(draft);
  /** The request as text while it is edited as JSON. */
  const [json, setJson] = useState<string | null>(null);
  const [why_no_form, setWhyNoForm] = useState<string>();
  const [model, setModel] = useState(models[0]?.id ?? '');
  const [modes, setModes] = useState<Modes>('fast');
  const [example, setExample] = useState<Example>();
  const [loaded_example, setLoadedExample] = useState(EXAMPLES[0]);
  const [thresholds, setThresholds] = useState<ReadonlyMap<string, number>>(new Map());
  /** The last request, sent or refused: errors belong to its fields. */
  const [tried, setTried] = useState<Draft | string>();
  const runs = useRuns(organization_id);

  const mode: Mode | null = modes === 'both' ? null : modes;
  const body = useMemo(
    () => (json === null ? bodyOf(draft, { model, mode }) : objectIn(json)),
    [json, draft, model, mode],
  );
  const is_tried = tried !== undefined && tried === (json ?? draft);
  const errors = is_tried ? errorsOf(draft, runs.comparison, json !== null) : NO_ERRORS;

  const form = useRef<HTMLDivElement>(null);
  const error_count = errors.size;
  useEffect(() => {
    if (error_count > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error_count]);

  const results = useRef<HTMLDivElement>(null);
  const { is_running } = runs;
  useEffect(() => {
    // Answers below the request would be out of sight.
    if (is_running && !matchMedia(SIDE_BY_SIDE).matches) results.current?.scrollIntoView();
  }, [is_running]);

  const start = () => {
    setTried(json ?? draft);
    setThresholds(new Map());
    if (key_id === undefined || body === null) return;
    if (json === null && complaintsAbout(draft).size > 0) {
      runs.clear();
      return;
    }
    runs.start(key_id, body, mode === null ? ['fast', 'consistent'] : [mode]);
  };

  const load = (chosen: Example) => {
    const loaded = draftOfExample(chosen);
    setLoadedExample(chosen);
    setDraft(loaded);
    setPristine(loaded);
    setJson(null);
    setWhyNoForm(undefined);
    runs.clear();
  };

  /** In JSON the text is the request, so the chosen model or mode is written into it. */
  const rewrite = (name: 'model' | 'mode', value: string) => {
    if (json !== null && body !== null) setJson(prettyJson(body.with(name, value)));
  };

  const takeJson = (text: string) => {
    setJson(text);
    setWhyNoForm(undefined);
    const written = objectIn(text);
    const written_model = written?.get('model');
    const written_mode = written?.get('mode');
    if (typeof written_model === 'string') setModel(written_model);
    if (modes !== 'both' && (written_mode === 'fast' || written_mode === 'consistent'))
      setModes(written_mode);
  };

  const show = (view: 'form' | 'json') => {
    if (view === 'json') {
      setJson(prettyJson(bodyOf(draft, { model, mode })));
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
  };

  const asked_threshold = (id: string) =>
    runs.comparison?.questions.find((one) => one.id === id)?.threshold ?? THRESHOLD_DEFAULT;
  const chosen_model = models.find(({ id }) => id === model);
  const is_dirty = json !== null || draft !== pristine;
  const can_ask = key_id !== undefined && can_pay;
  const recorded = can_ask || is_dirty ? undefined : recordedAnswers(loaded_example?.name);

  return (
    <>
      {keys.length === 0 && (
        <Notice
          tone="warning"
          title="There is no API key yet."
          actions={
            <ButtonLink kind="primary" href={organizationPath(organization_id, 'keys')}>
              Create a key
            </ButtonLink>
          }
        >
          The playground asks with a key of the organization, so that its project pays and shows the usage.
        </Notice>
      )}
      {!can_pay && (
        <Notice
          tone="warning"
          title="There is no credit to ask with."
          actions={<CreditLink organization_id={organization_id} />}
        >
          Every answer is paid from the organization's credit. An example costs less than a tenth of a cent.
        </Notice>
      )}
      <div class="playground-setup">
        <div class="playground-examples">
          <span class="muted">Examples</span>
          {EXAMPLES.map((one) => (
            <Button key={one.name} size="small" onClick={() => (is_dirty ? setExample(one) : load(one))}>
              {one.name}
            </Button>
          ))}
        </div>
        <SegmentedControl
          label="Edit as"
          options={VIEWS}
          value={json === null ? 'form' : 'json'}
          onChange={show}
        />
      </div>
      <div class="playground">
        <div class="playground-request" ref={form}>
          {json === null ? (
            <>
              <RecordEditor
                record={draft.record}
                error={errors.get('state')}
                onChange={(record) => setDraft({ ...draft, record })}
              />
              <QuestionsEditor
                questions={draft.questions}
                errors={errors}
                onChange={(questions) => setDraft({ ...draft, questions })}
              />
            </>
          ) : (
            <section class="panel padded playground-part" aria-label="Request">
              <h2>Request</h2>
              {why_no_form !== undefined && (
                <Notice tone="warning" title="The form cannot show this request.">
                  {why_no_form}
                </Notice>
              )}
              <TextArea
                label="Request in JSON"
                hides_label
                name="request"
                is_code
                rows={24}
                value={json}
                error={errors.get('request')}
                onInput={takeJson}
              />
            </section>
          )}
          <section class="panel padded playground-part" aria-label="Run with">
            <div class="playground-choices">
              <Select
                label="Project"
                name="project"
                options={projects.map(({ id, name }) => ({ value: id, label: name }))}
                value={project_id}
                onChange={setProject}
              />
              <Select
                label="API key"
                name="key"
                options={
                  keys_of_project.length === 0
                    ? [{ value: '', label: 'None' }]
                    : keys_of_project.map(({ id, name }) => ({ value: id, label: name }))
                }
                value={key_id ?? ''}
                is_disabled={keys_of_project.length === 0}
                onChange={setKey}
              />
              <Select
                label="Model"
                name="model"
                options={models.map(({ id }) => ({ value: id, label: id }))}
                value={model}
                error={errors.get('model')}
                onChange={(chosen) => {
                  setModel(chosen);
                  rewrite('model', chosen);
                }}
              />
            </div>
            {keys.length > 0 && key_id === undefined && (
              <p class="help">
                This project has no key. <a href={organizationPath(organization_id, 'keys')}>Create one</a>,
                or choose another project.
              </p>
            )}
            {chosen_model !== undefined && (
              <p class="help">
                {formatMoney(chosen_model.input_price_micros_per_million_tokens)} for a million input tokens,
                answers are free. Of a record over {formatNumber(chosen_model.context_tokens)} tokens the
                middle is left out.
              </p>
            )}
          </section>
          <div class="run-bar panel">
            <SegmentedControl
              label="Mode"
              options={MODES}
              value={modes}
              onChange={(chosen) => {
                setModes(chosen);
                if (chosen !== 'both') rewrite('mode', chosen);
              }}
            />
            {runs.is_running ? (
              <Button onClick={runs.abort}>Abort</Button>
            ) : (
              <Button kind="primary" is_disabled={key_id === undefined} onClick={start}>
                Run
              </Button>
            )}
          </div>
          {errors.has('mode') && (
            <p class="field-error" role="alert">
              {errors.get('mode')}
            </p>
          )}
        </div>
        <div class="playground-results" ref={results}>
          <p class="visually-hidden" role="status">
            {statusOf(runs)}
          </p>
          <Results
            organization_id={organization_id}
            comparison={runs.comparison}
            is_running={runs.is_running}
            onRecorded={
              recorded === undefined
                ? null
                : () => runs.showRecorded(bodyOf(draft, RECORDED_ASKING), recorded)
            }
            onReverse={() => key_id !== undefined && runs.startReversed(key_id)}
            thresholdOf={(id) => thresholds.get(id) ?? asked_threshold(id)}
            onThreshold={(id, threshold) => {
              setThresholds(new Map(thresholds).set(id, threshold));
              // The threshold that was tried on the answers becomes part of the request, and of its code.
              const at = draft.questions.findIndex((question) => question.id === id);
              const question = draft.questions[at];
              if (json === null && question !== undefined) {
                setDraft({ ...draft, questions: draft.questions.with(at, { ...question, threshold }) });
              }
            }}
          />
        </div>
      </div>
      <Code body={body} />
      <ConfirmDialog
        title="Load the example?"
        action="Load example"
        is_dangerous={false}
        is_open={example !== undefined}
        onClose={() => setExample(undefined)}
        onConfirm={() => {
          if (example !== undefined) load(example);
          return Promise.resolve();
        }}
      >
        <p>It replaces the record and the questions that are on the page.</p>
      </ConfirmDialog>
    </>
  );
}

const NO_ERRORS: ReadonlyMap<string, string> = new Map();

/** Returns the errors of the last request, by the names of fields. */
function errorsOf(
  draft: Draft,
  comparison: ReturnType<typeof useRuns>['comparison'],
  is_json: boolean,
): ReadonlyMap<string, string> {
  const failed = comparison?.runs.find(({ outcome }) => outcome.state === 'failed')?.outcome;
  const error = failed?.state === 'failed' ? failed.error : undefined;
  if (is_json) {
    if (comparison === undefined) return new Map([['request', 'This is not a JSON object.']]);
    return error?.param == null ? NO_ERRORS : new Map([['request', `${error.param}: ${error.message}`]]);
  }
  const complaints = complaintsAbout(draft);
  if (complaints.size > 0 || error?.param == null) return complaints;
  return new Map([[fieldOf(draft, error.param), error.message]]);
}

/** Returns the field of a path of the request. */
function fieldOf({ questions }: Draft, param: string): string {
  for (const { key, id } of questions) {
    if (param === `questions.${id}.type`) return `type-${key}`;
    if (param === `questions.${id}.criteria`) return `criteria-${key}`;
  }
  return param;
}

function objectIn(text: string): JsonObject<JsonValue> | null {
  try {
    const value = readJson(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Returns the announcement of changes for screen readers. */
function statusOf({ comparison, is_running }: ReturnType<typeof useRuns>): string {
  if (comparison === undefined) return '';
  if (is_running) return 'Asking';
  const answered = comparison.runs.filter(({ outcome }) => outcome.state === 'answered').length;
  return answered === comparison.runs.length ? 'The answers are there' : 'Ended without all answers';
}
