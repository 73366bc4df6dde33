import { useState } from 'preact/hooks';
import { writeJson } from '../../../json/write-json.ts';
import { MODES } from '../../../questions/types-and-modes.ts';
import type { Setup } from './asking-setup.ts';
import { Code } from './code.tsx';
import type { KeptWork } from './kept-work.ts';
import { MissingParts } from './missing-parts.tsx';
import { ReplaceDialog } from './replace-dialog.tsx';
import { RequestBar } from './request-bar.tsx';
import { RequestEditor } from './request-editor.tsx';
import { ResultTabs, type ResultView } from './result-tabs.tsx';
import { RunBar } from './run-bar.tsx';
import { RunWith } from './run-with.tsx';
import { modeOf } from './use-asking.ts';
import { useFirstError } from './use-first-error.ts';
import { useKeptDraft } from './use-kept-draft.ts';
import { useKeptWork } from './use-kept-work.ts';
import { useKeyChoice } from './use-key-choice.ts';
import { useOpening } from './use-opening.ts';
import { useRequest, type WrittenRequest } from './use-request.ts';
import { useRequestErrors } from './use-request-errors.ts';
import { useRunShortcut } from './use-run-shortcut.ts';
import { type Asked, useRuns } from './use-runs.ts';
import { useThresholds } from './use-thresholds.ts';
import { useTokenCount } from './use-token-count.ts';

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
  const { models } = setup;
  const kept = useKeptWork(scope, work);
  const chosen_key = useKeyChoice(setup, work.draft);
  const { project_id, key_id } = chosen_key;
  const request = useRequest(
    work.draft,
    models.map(({ id }) => id),
  );
  const { body } = request;
  /** Another model that is asked the same; empty for none. */
  const [compared_model, setComparedModel] = useState(
    models.find(({ id }) => id === work.draft?.compared_model)?.id ?? '',
  );
  useKeptDraft(scope, request, { compared_model, project_id, key_id: key_id ?? null }, kept.noteSaved);

  const [view, setView] = useState<ResultView>('answers');
  const runs = useRuns(organization_id, (asked, outcomes) => {
    void kept.addRun({ body: writeJson(asked), outcomes });
  });
  const { errors, has_complaints, markTried } = useRequestErrors(request, runs.comparison);
  const form = useFirstError(errors.size);
  const thresholds = useThresholds(request, runs.comparison);
  const opening = useOpening(request, runs, kept, () => setView('answers'));

  const asked = askedOf(request, compared_model);
  const can_ask = key_id !== undefined && setup.can_pay;
  const price = useTokenCount(
    can_ask && body !== null && !has_complaints ? { organization_id, key_id, body, asked } : null,
  );
  const run = () => {
    markTried();
    thresholds.reset();
    if (key_id === undefined || body === null) return;
    setView('answers');
    if (has_complaints) runs.clear();
    else runs.start(key_id, body, asked);
  };
  useRunShortcut(key_id === undefined || runs.is_running ? null : run);

  return (
    <>
      <MissingParts organization_id={organization_id} setup={setup} />
      <RequestBar organization_id={organization_id} request={request} kept={kept} opening={opening} />
      <div class="playground">
        <div class="playground-request" ref={form}>
          <RequestEditor request={request} errors={errors} price={price} />
          <RunWith
            organization_id={organization_id}
            setup={setup}
            chosen_key={chosen_key}
            request={request}
            error={errors.get('model')}
            compared_model={compared_model}
            onCompare={setComparedModel}
          />
          <RunBar
            request={request}
            error={errors.get('mode')}
            price={price}
            runs={runs}
            onRun={key_id === undefined ? null : run}
          />
        </div>
        <ResultTabs
          organization_id={organization_id}
          request={request}
          key_id={key_id}
          can_ask={can_ask}
          runs={runs}
          kept_runs={kept.runs}
          thresholds={thresholds}
          view={view}
          onView={setView}
          onOpenRun={opening.openRun}
        />
      </div>
      <Code body={body} />
      <ReplaceDialog {...opening.replacing} />
    </>
  );
}

/** Returns the models and modes that are asked. A body that names a model is asked of that one first. */
function askedOf({ body, model, modes }: WrittenRequest, compared_model: string): Asked {
  const mode = modeOf(modes);
  const named_model = body?.get('model');
  const first_model = typeof named_model === 'string' ? named_model : model;
  return {
    models:
      compared_model === '' || compared_model === first_model ? [first_model] : [first_model, compared_model],
    modes: mode === null ? MODES : [mode],
  };
}
