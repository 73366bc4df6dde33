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
      <section class="run-bar panel" aria-label="Run">
        <SegmentedControl label="Mode" options={MODE_OR_BOTH_OPTIONS} value={modes} onChange={setModes} />
        <div class="run-price">
          <div class="row at-end">
            <span class="taking-turns">
              <span class="number">{price !== undefined && priceText(price)}</span>
              {
                // In the place of Run, the second click of a double click would abort a run that is paid for.
                is_running && <Button onClick={abort}>Abort</Button>
              }
            </span>
            <Button
              kind="primary"
              is_busy={is_running}
              is_disabled={onRun === null}
              title="Run (Ctrl+Enter)"
              onClick={({ detail: clicks }) => {
                // Where the first click was answered at once, the second one of a double click would be paid too.
                if (clicks < 2) onRun?.();
              }}
            >
              Run
            </Button>
          </div>
        </div>
      </section>
      {error !== undefined && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </>
  );
}

function priceText({ is_exact, input_tokens, cost_usd }: RequestPrice): string {
  const money = formatCost(microsOf(cost_usd));
  return `${is_exact ? '' : 'at most '}${formatCount(input_tokens, 'token')} · ${money}`;
}
