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
      <span class="run-price number">{priceText(price)}</span>
      <RunButtons {...buttons} />
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
  if (state === 'running') return <Button onClick={onPause}>Pause</Button>;
  if (state === 'pausing') return <Button is_busy>Pausing</Button>;
  return (
    <>
      {done > 0 && <Button onClick={onRestart}>Start over</Button>}
      {(done < total || done === 0) && (
        <Button kind="primary" is_disabled={onRun === null} onClick={() => onRun?.()}>
          {done === 0 ? 'Run' : 'Go on'}
        </Button>
      )}
    </>
  );
}

function priceText(price: RowsPrice | undefined): string {
  if (price === undefined) return '';
  const { input_tokens, cost_micros, is_exact } = price;
  const money = formatMoney(cost_micros);
  return `${is_exact ? '' : 'about '}${formatCount(input_tokens, 'token')} · ${money}`;
}
