import { microsOf } from '../../../contract/money.ts';
import { Button } from '../components/button.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { formatCost, formatCount } from '../format.ts';
import { MODE_OR_BOTH_OPTIONS } from './use-asking.ts';
import type { WrittenRequest } from './use-request.ts';
import type { Runs } from './use-runs.ts';
import type { RequestPrice } from './use-token-count.ts';

/** The modes of a run, its price, and what starts and aborts it. */
export function RunBar({
  request: { modes, setModes },
  error,
  price,
  runs: { is_running, abort },
  onRun,
}: {
  readonly request: WrittenRequest;
  /** That of the mode. */
  readonly error: string | undefined;
  readonly price: RequestPrice | undefined;
  readonly runs: Runs;
  /** Null while there is no key to ask with. */
  readonly onRun: (() => void) | null;
}) {
  return (
    <>
      <div class="run-bar panel">
        <SegmentedControl label="Mode" options={MODE_OR_BOTH_OPTIONS} value={modes} onChange={setModes} />
        <span class="run-price number">
          {price !== undefined && (
            <>
              {price.is_exact ? '' : 'at most '}
              {formatCount(price.input_tokens, 'token')} · {formatCost(microsOf(price.cost_usd))}
            </>
          )}
        </span>
        {is_running ? (
          <Button onClick={abort}>Abort</Button>
        ) : (
          <Button
            kind="primary"
            is_disabled={onRun === null}
            title="Run (Ctrl+Enter)"
            onClick={() => onRun?.()}
          >
            Run
          </Button>
        )}
      </div>
      {error !== undefined && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </>
  );
}
