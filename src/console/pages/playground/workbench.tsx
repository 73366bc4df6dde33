import { useEffect, useRef, useState } from 'preact/hooks';
import { microsOf } from '../../../contract/money.ts';
import { writeJson } from '../../../json/write-json.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Select, TextArea } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { SegmentedControl, Tabs } from '../components/tabs.tsx';
import { formatCost, formatCount, formatMoney, formatNumber } from '../format.ts';
import { objectIn } from '../object-in.ts';
import { organizationPath } from '../page.ts';
import type { Setup } from './asking-setup.ts';
import { Code } from './code.tsx';
import { bodyOf, complaintsAbout, type Draft, draftOf, emptyPartsOf } from './draft.ts';
import { EXAMPLES } from './examples.ts';
import { type KeptRun, type KeptWork, keepDraft, keeps_work } from './kept-work.ts';
import { KeyChoice, keyOf } from './key-choice.tsx';
import { LeftOutNotice } from './left-out.tsx';
import { LinkButton } from './link-button.tsx';
import { MissingParts } from './missing-parts.tsx';
import { THRESHOLD_DEFAULT } from './question-fields.tsx';
import { QuestionsEditor } from './questions.tsx';
import { RawResponse } from './raw-response.tsx';
import { RecentRuns } from './recent-runs.tsx';
import { RecordEditor } from './record.tsx';
import { recordedAnswers } from './recorded-answers.ts';
import { Results } from './results.tsx';
import { SavedRequests } from './saved-requests.tsx';
import { MODES, modeOf } from './use-asking.ts';
import { useKeptWork } from './use-kept-work.ts';
import { useLinkedRequest } from './use-linked-request.ts';
import { useRequest } from './use-request.ts';
import { type Asked, useRuns } from './use-runs.ts';
import { useTokenCount } from './use-token-count.ts';

/** As in `style.css`. */
const SIDE_BY_SIDE = '(width >= 960px)';

const VIEWS = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

/** The model and mode of the recorded answers. */
const RECORDED_ASKING = { model: 'decision-1', mode: 'fast' } as const;

const RESULT_VIEWS = [
  { value: 'answers', label: 'Answers' },
  { value: 'raw', label: 'Raw response' },
  { value: 'recent', label: 'Recent runs' },
] as const;
type ResultView = (typeof RESULT_VIEWS)[number]['value'];

/** A request that is to take the place of one that somebody wrote. */
interface Replacement {
  readonly title: string;
  readonly load: () => void;
}

/** The request on one side, its answers on the other. */
export function Workbench({
  organization_id,
  setup,
  scope,
  work,
}: {
  readonly organization_id: string;
  readonly setup: Setup;
  /** The name under which the browser keeps it. */
  readonly scope: string;
  /** Kept work, as it was when the page was opened. */
  readonly work: KeptWork;
}) {
  const kept = useKeptWork(scope, work);
  const { keys, models, can_pay } = setup;
  const [chosen_project, setProject] = useState(work.draft?.project_id);
  const [chosen_key, setKey] = useState(work.draft?.key_id ?? undefined);
  const chosen = { project_id: chosen_project, key_id: chosen_key };
  const { project_id, keys_of_project, key_id } = keyOf(setup, chosen);

  const request = useRequest(
    work.draft,
    models.map(({ id }) => id),
  );
  const { draft, json, model, modes, example, is_dirty, body, setDraft } = request;
  /** Another model that is asked the same; empty for none. */
  const [compared_model, setComparedModel] = useState(
    models.find(({ id }) => id === work.draft?.compared_model)?.id ?? '',
  );
  const [replacement, setReplacement] = useState<Replacement>();
  const [thresholds, setThresholds] = useState<ReadonlyMap<string, number>>(new Map());
  /** The last request, sent or refused: errors belong to its fields. */
  const [tried, setTried] = useState<Draft | string>();
  const [view, setView] = useState<ResultView>('answers');
  const runs = useRuns(organization_id, (asked, outcomes) => {
    void kept.addRun({ body: writeJson(asked), outcomes });
  });

  const is_kept = keeps_work.value;
  useEffect(() => {
    const chosen = { model, compared_model, modes, project_id, key_id: key_id ?? null };
    if (is_kept) void keepDraft(scope, { draft, json, is_dirty, example, ...chosen });
  }, [is_kept, scope, draft, json, is_dirty, example, model, compared_model, modes, project_id, key_id]);

  const is_tried = tried !== undefined && tried === (json ?? draft);
  const errors = is_tried ? errorsOf(draft, runs.comparison, json) : NO_ERRORS;

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

  const mode = modeOf(modes);
  const named_model = body?.get('model');
  const first_model = typeof named_model === 'string' ? named_model : model;
  const asked: Asked = {
    models:
      compared_model === '' || compared_model === first_model ? [first_model] : [first_model, compared_model],
    modes: mode === null ? ['fast', 'consistent'] : [mode],
  };
  const is_askable = body !== null && complaintsOf(draft, json).size === 0;
  const price = useTokenCount(
    key_id !== undefined && can_pay && is_askable ? { organization_id, key_id, body, asked } : null,
  );

  const start = () => {
    setTried(json ?? draft);
    setThresholds(new Map());
    if (key_id === undefined || body === null) return;
    setView('answers');
    if (complaintsOf(draft, json).size > 0) {
      runs.clear();
      return;
    }
    runs.start(key_id, body, asked);
  };

  const can_run = key_id !== undefined && !is_running;
  const latest_start = useRef(start);
  latest_start.current = start;
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      const is_shortcut = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
      if (!is_shortcut || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      if (can_run) latest_start.current();
    };
    document.addEventListener('keydown', follow);
    return () => document.removeEventListener('keydown', follow);
  }, [can_run]);

  /** Asks before what somebody wrote is replaced. */
  const replace = (title: string, load: () => void) => {
    const loadAll = () => {
      setView('answers');
      runs.clear();
      load();
    };
    if (is_dirty) setReplacement({ title, load: loadAll });
    else loadAll();
  };
  const openBody = (text: string) => {
    const opened = objectIn(text);
    if (opened !== null) request.open(opened);
    return opened;
  };
  const openRun = (run: KeptRun) =>
    replace('Open the run?', () => {
      const opened = openBody(run.body);
      if (opened !== null) runs.showKept(opened, run.outcomes);
    });
  const save = async (name: string) => {
    if (body !== null) await kept.save(name, writeJson(body));
  };
  const linked = useLinkedRequest(async (opened) => {
    if (is_dirty && body !== null) await kept.saveReplaced(writeJson(body));
    runs.clear();
    request.open(opened);
  });

  const asked_threshold = (id: string) =>
    runs.comparison?.questions.find((one) => one.id === id)?.threshold ?? THRESHOLD_DEFAULT;
  const chosen_model = models.find(({ id }) => id === model);
  const can_ask = key_id !== undefined && can_pay;
  const recorded = can_ask || is_dirty ? undefined : recordedAnswers(example ?? undefined);

  return (
    <>
      <MissingParts organization_id={organization_id} setup={setup} />
      <div class="playground-setup">
        <div class="playground-examples">
          <span class="muted">Examples</span>
          {EXAMPLES.map((one) => (
            <Button
              key={one.name}
              size="small"
              onClick={() => replace('Load the example?', () => request.loadExample(one))}
            >
              {one.name}
            </Button>
          ))}
        </div>
        <div class="row">
          <SavedRequests
            requests={kept.requests}
            onSave={body === null ? null : save}
            onOpen={(saved) => replace('Open the saved request?', () => openBody(saved.body))}
            onRemove={kept.remove}
          />
          <LinkButton body={body} organization_id={organization_id} />
          <SegmentedControl
            label="Edit as"
            options={VIEWS}
            value={json === null ? 'form' : 'json'}
            onChange={request.show}
          />
        </div>
      </div>
      {linked === 'unreadable' && (
        <Notice tone="warning" title="This link has no request that can be read.">
          It may have been cut off. Ask for it again.
        </Notice>
      )}
      <div class="playground">
        <div class="playground-request" ref={form}>
          {json === null ? (
            <>
              <RecordEditor
                record={draft.record}
                error={errors.get('state')}
                onChange={(record) => setDraft({ ...draft, record })}
              />
              <LeftOutNotice text={draft.record.text} price={price} />
              <QuestionsEditor
                questions={draft.questions}
                errors={errors}
                onChange={(questions) => setDraft({ ...draft, questions })}
              />
            </>
          ) : (
            <section class="panel padded playground-part" aria-label="Request">
              <h2>Request</h2>
              {request.why_no_form !== undefined && (
                <Notice tone="warning" title="The form cannot show this request.">
                  {request.why_no_form}
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
                onInput={request.takeJson}
              />
              <LeftOutNotice text={json} price={price} />
            </section>
          )}
          <section class="panel padded playground-part" aria-label="Run with">
            <div class="playground-choices">
              <KeyChoice
                setup={setup}
                keys={keys_of_project}
                project_id={project_id}
                key_id={key_id}
                onProject={setProject}
                onKey={setKey}
              />
              <Select
                label="Model"
                name="model"
                options={models.map(({ id }) => ({ value: id, label: id }))}
                value={model}
                error={errors.get('model')}
                onChange={request.setModel}
              />
              {models.length > 1 && (
                <Select
                  label="Compare with"
                  name="compared_model"
                  options={[
                    { value: '', label: 'No other model' },
                    ...models.map(({ id }) => ({ value: id, label: id, is_disabled: id === model })),
                  ]}
                  value={compared_model}
                  onChange={setComparedModel}
                />
              )}
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
            <SegmentedControl label="Mode" options={MODES} value={modes} onChange={request.setModes} />
            <span class="run-price number">
              {price !== undefined && (
                <>
                  {price.is_exact ? '' : 'at most '}
                  {formatCount(price.input_tokens, 'token')} · {formatCost(microsOf(price.cost_usd))}
                </>
              )}
            </span>
            {runs.is_running ? (
              <Button onClick={runs.abort}>Abort</Button>
            ) : (
              <Button
                kind="primary"
                is_disabled={key_id === undefined}
                title="Run (Ctrl+Enter)"
                onClick={start}
              >
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
          <Tabs label="Results" options={RESULT_VIEWS} value={view} onChange={setView}>
            <div class="playground-results">
              {view === 'raw' && <RawResponse runs={runs.comparison?.runs ?? []} />}
              {view === 'recent' && <RecentRuns runs={kept.runs} onOpen={openRun} />}
              {view === 'answers' && (
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
                    // The threshold that was tried is asked with the next time, and taken along in code.
                    const at = draft.questions.findIndex((question) => question.id === id);
                    const question = draft.questions[at];
                    if (json === null && question !== undefined) {
                      setDraft({ ...draft, questions: draft.questions.with(at, { ...question, threshold }) });
                    }
                  }}
                />
              )}
            </div>
          </Tabs>
        </div>
      </div>
      <Code body={body} />
      <ConfirmDialog
        title={replacement?.title ?? ''}
        action="Replace"
        is_dangerous={false}
        is_open={replacement !== undefined}
        onClose={() => setReplacement(undefined)}
        onConfirm={() => {
          replacement?.load();
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
  json: string | null,
): ReadonlyMap<string, string> {
  const failed = comparison?.runs.find(({ outcome }) => outcome.state === 'failed')?.outcome;
  const error = failed?.state === 'failed' ? failed.error : undefined;
  if (json !== null) {
    if (objectIn(json) === null) return new Map([['request', 'This is not a JSON object.']]);
    const complaints = complaintsOf(draft, json);
    if (complaints.size > 0) return complaints;
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

/** Complaints that keep the request from being asked, however it is edited. */
function complaintsOf(draft: Draft, json: string | null): ReadonlyMap<string, string> {
  if (json === null) return complaintsAbout(draft);
  const body = objectIn(json);
  const read = body === null ? 'This is not a JSON object.' : draftOf(body);
  // The service refuses what the form cannot show.
  if (typeof read === 'string') return NO_ERRORS;
  const [complaint] = emptyPartsOf(read.draft).values();
  return complaint === undefined ? NO_ERRORS : new Map([['request', complaint]]);
}

/** Returns the announcement of changes for screen readers. */
function statusOf({ comparison, is_running }: ReturnType<typeof useRuns>): string {
  if (comparison === undefined) return '';
  if (is_running) return 'Asking';
  const answered = comparison.runs.filter(({ outcome }) => outcome.state === 'answered').length;
  return answered === comparison.runs.length ? 'The answers are there' : 'Ended without all answers';
}
