import { useEffect, useRef } from 'preact/hooks';
import { Tabs } from '../components/tabs.tsx';
import { bodyOf } from './draft.ts';
import type { KeptRun } from './kept-work.ts';
import { RawResponse } from './raw-response.tsx';
import { RecentRuns } from './recent-runs.tsx';
import { recordedAnswers } from './recorded-answers.ts';
import { Results } from './results.tsx';
import type { WrittenRequest } from './use-request.ts';
import type { Runs } from './use-runs.ts';
import type { Thresholds } from './use-thresholds.ts';

/** As in `style.css`. */
const SIDE_BY_SIDE = '(width >= 960px)';

const RESULT_VIEWS = [
  { value: 'answers', label: 'Answers' },
  { value: 'raw', label: 'Raw response' },
  { value: 'recent', label: 'Recent runs' },
] as const;
export type ResultView = (typeof RESULT_VIEWS)[number]['value'];

/** The model and mode of the recorded answers. */
const RECORDED_ASKING = { model: 'decision-1', mode: 'fast' } as const;

/** The answers of the runs, their raw responses, and earlier runs: one of them at a time. */
export function ResultTabs({
  organization_id,
  request: { draft, example, is_dirty },
  key_id,
  can_ask,
  runs,
  kept_runs,
  thresholds,
  view,
  onView,
  onOpenRun,
}: {
  readonly organization_id: string;
  readonly request: WrittenRequest;
  readonly key_id: string | undefined;
  /** True with a key and credit. */
  readonly can_ask: boolean;
  readonly runs: Runs;
  readonly kept_runs: readonly KeptRun[];
  readonly thresholds: Thresholds;
  readonly view: ResultView;
  readonly onView: (view: ResultView) => void;
  readonly onOpenRun: (run: KeptRun) => void;
}) {
  const results = useRef<HTMLDivElement>(null);
  const { comparison, is_running } = runs;
  const recorded = can_ask || is_dirty ? undefined : recordedAnswers(example ?? undefined);
  useEffect(() => {
    // Answers below the request would be out of sight.
    if (is_running && !matchMedia(SIDE_BY_SIDE).matches) results.current?.scrollIntoView();
  }, [is_running]);
  return (
    <div class="playground-results" ref={results}>
      <p class="visually-hidden" role="status">
        {statusOf(runs)}
      </p>
      <Tabs label="Results" options={RESULT_VIEWS} value={view} onChange={onView}>
        <div class="playground-results">
          {view === 'raw' && <RawResponse runs={comparison?.runs ?? []} />}
          {view === 'recent' && <RecentRuns runs={kept_runs} onOpen={onOpenRun} />}
          {view === 'answers' && (
            <Results
              organization_id={organization_id}
              comparison={comparison}
              is_running={is_running}
              onRecorded={
                recorded === undefined
                  ? null
                  : () => runs.showRecorded(bodyOf(draft, RECORDED_ASKING), recorded)
              }
              onBackward={() => key_id !== undefined && runs.startBackward(key_id)}
              thresholdOf={thresholds.of}
              onThreshold={thresholds.set}
            />
          )}
        </div>
      </Tabs>
    </div>
  );
}

/** Returns the announcement of changes for screen readers. */
function statusOf({ comparison, is_running }: Runs): string {
  if (comparison === undefined) return '';
  if (is_running) return 'Asking';
  const answered = comparison.runs.filter(({ outcome }) => outcome.state === 'answered').length;
  return answered === comparison.runs.length ? 'The answers are there' : 'Ended without all answers';
}
