import { Notice } from '../components/notice.tsx';
import type { Setup } from '../playground/asking-setup.ts';
import { CreditNotice } from './credit-notice.tsx';
import type { RowRun, RowTask } from './row-run.ts';
import { RunBar } from './run-bar.tsx';
import type { RunSetup } from './run-setup.ts';
import { RunWith } from './run-with.tsx';
import type { RowsPrice } from './use-rows-price.ts';

/** The key that pays for a run, its model and mode, its price, and what starts and pauses it. */
export function RunPanel({
  setup,
  chosen,
  run,
  task,
  price,
  total,
  is_begun,
  onChoose,
  onRun,
  onRestart,
}: {
  readonly setup: Setup;
  readonly chosen: RunSetup;
  readonly run: RowRun;
  /** Null while there is something missing. */
  readonly task: RowTask | null;
  readonly price: RowsPrice | undefined;
  /** How many rows are asked. */
  readonly total: number;
  /** True once nothing may be chosen differently. */
  readonly is_begun: boolean;
  readonly onChoose: (change: Partial<Omit<RunSetup, 'run_key'>>) => void;
  /** Starts the run, or goes on with it. */
  readonly onRun: (task: RowTask) => Promise<void>;
  readonly onRestart: () => void;
}) {
  return (
    <>
      <RunWith setup={setup} chosen={chosen} is_disabled={is_begun} onChoose={onChoose} />
      {run.progress.value.kept === 'replaced' && (
        <Notice tone="danger" title="This file, or what is chosen for it, was replaced in another tab.">
          This page goes on only if you run it, and its answers are lost when you leave it.
        </Notice>
      )}
      <CreditNotice setup={setup} price={price} />
      <RunBar
        mode={chosen.mode}
        is_disabled={is_begun}
        price={price}
        progress={run.progress.value}
        total={total}
        onMode={(mode) => onChoose({ mode })}
        onRun={task === null ? null : () => void onRun(task)}
        onPause={() => run.pause()}
        onRestart={onRestart}
      />
    </>
  );
}
