import type { Mode } from '../../../questions/types-and-modes.ts';
import { Button } from '../components/button.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { formatCount, formatMoney } from '../format.ts';
import { MODE_OPTIONS } from '../mode-options.ts';
import type { RunProgress } from './row-run.ts';
import type { RowsPrice } from './use-rows-price.ts';

interface RunButtonsProps {
  readonly progress: RunProgress;
  readonly total: number;
  /** Null while there is something missing. */
  readonly onRun: (() => void) | null;
  readonly onPause: () => void;
  readonly onRestart: () => void;
}

/** The mode of a run, its price, and what starts and pauses it. */
export function RunBar({
  mode,
  is_disabled,
  price,
  onMode,
  ...buttons
}: RunButtonsProps & {
  readonly mode: Mode;
  /** True while the mode cannot be changed. */
  readonly is_disabled: boolean;
  readonly price: RowsPrice | undefined;
  readonly onMode: (mode: Mode) => void;
}) {
  return (
    <div class="run-bar panel">
      <SegmentedControl
        label="Mode"
        options={MODE_OPTIONS.map((one) => ({ ...one, is_disabled }))}
        value={mode}
        onChange={onMode}
      />
      <div class="run-price">
        <div class="row at-end">
          <span class="number">{priceText(price)}</span>
          <RunButtons {...buttons} />
        </div>
      </div>
    </div>
  );
}

function RunButtons({
  progress: { state, answered, refused },
  total,
  onRun,
  onPause,
  onRestart,
}: RunButtonsProps) {
  const done = answered + refused;
  const is_running = state !== 'stopped';
  return (
    <>
      {is_running ? (
        // Beside Run: in its place, the second click of a double click would pause the run.
        <Button is_busy={state === 'pausing'} onClick={onPause}>
          {state === 'pausing' ? 'Pausing' : 'Pause'}
        </Button>
      ) : (
        done > 0 && <Button onClick={onRestart}>Start over</Button>
      )}
      {(is_running || done < total || done === 0) && (
        <Button kind="primary" is_busy={is_running} is_disabled={onRun === null} onClick={() => onRun?.()}>
          {runLabel(is_running, done)}
        </Button>
      )}
    </>
  );
}

function runLabel(is_running: boolean, done: number): string {
  if (is_running) return 'Running';
  return done === 0 ? 'Run' : 'Go on';
}

function priceText(price: RowsPrice | undefined): string {
  if (price === undefined) return '';
  const { input_tokens, cost_micros, is_exact } = price;
  const money = formatMoney(cost_micros);
  return `${is_exact ? '' : 'about '}${formatCount(input_tokens, 'token')} · ${money}`;
}
