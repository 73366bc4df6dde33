import { microsOf } from '../../../contract/money.ts';
import { isJsonObject } from '../../../json/json-value.ts';
import { EmptyState } from '../components/states.tsx';
import { Time } from '../components/time.tsx';
import { formatCost, formatCount } from '../format.ts';
import { objectIn } from '../object-in.ts';
import { KEPT_RUNS_MAX, type KeptRun, keeps_work } from './kept-work.ts';

/** How much of a record a line shows. */
const SHOWN_LENGTH = 160;

/** The comparisons of this browser, newest first. A line opens the request with its answers. */
export function RecentRuns({
  runs,
  onOpen,
}: {
  readonly runs: readonly KeptRun[];
  readonly onOpen: (run: KeptRun) => void;
}) {
  if (runs.length === 0) {
    return (
      <div class="panel">
        <EmptyState title="No recent runs">
          {keeps_work.value
            ? `The last ${KEPT_RUNS_MAX} runs are listed here. They stay in this browser.`
            : 'This browser keeps nothing.'}
        </EmptyState>
      </div>
    );
  }
  return (
    <ul class="panel saved-list">
      {runs.map((run) => (
        <li key={run.id ?? run.at_ms}>
          <button type="button" class="saved-name" onClick={() => onOpen(run)}>
            <span class="saved-record">{recordIn(run)}</span>
            <span class="muted">
              <Time time_ms={run.at_ms} /> · {formatCount(run.outcomes.length, 'run')} · {costOf(run)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function recordIn({ body }: KeptRun): string {
  const state = objectIn(body)?.get('state');
  const text = typeof state === 'string' ? state : isJsonObject(state) ? state.names.join(', ') : 'Record';
  return text.slice(0, SHOWN_LENGTH);
}

function costOf({ outcomes }: KeptRun): string {
  const cost_usd = outcomes.reduce((sum, { decision }) => sum + decision.usage.cost_usd, 0);
  return formatCost(microsOf(cost_usd));
}
