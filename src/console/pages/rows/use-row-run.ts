import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { keeps_work, type Stores } from '../playground/kept-work.ts';
import { useLeaveQuestion } from '../use-leave-question.ts';
import { useRefresh } from '../use-refresh.ts';
import { type KeptRowRun, RunKeeper, type RunStore } from './kept-rows.ts';
import type { RowFile } from './row-file.ts';
import { RowRun, type RunProgress } from './row-run.ts';

/** A file with the run over its rows, both kept in the browser. */
export interface RowRunState {
  readonly file: RowFile | null;
  readonly run: RowRun;
  readonly progress: RunProgress;
  /** True once rows were sent or answered, so that nothing may be chosen differently. */
  readonly is_begun: boolean;
  /** Takes another file, without answers. */
  readonly take: (file: RowFile) => void;
  /** Forgets the answers. A change of the choices must go with it: it gives the new run its key. */
  readonly restart: () => void;
  /** Forgets the file and its answers. */
  readonly remove: () => Promise<unknown>;
}

interface Following<Store extends RunStore> {
  /** Where the browser keeps the choices. */
  readonly store: Store;
  /** The name under which it keeps the run. */
  readonly scope: string;
  /** The run that it had at the start of the page. */
  readonly kept: KeptRowRun<Stores[Store]['value']> | null;
  readonly chosen: Stores[Store]['value'];
}

/** Follows a file and the run over its rows with what is chosen, and keeps them in the browser. */
export function useRowRun<Store extends RunStore>({
  store,
  scope,
  kept,
  chosen,
}: Following<Store>): RowRunState {
  const [keeper] = useState(() => new RunKeeper(store, scope, kept));
  const [file, setFile] = useState<RowFile | null>(kept?.file ?? null);
  const [run, setRun] = useState(() => new RowRun(keeper, kept?.answers));
  useEffect(() => () => run.leave(), [run]);

  // A layout effect runs before the next event: the run is kept before its first answers.
  useLayoutEffect(() => {
    if (file === null) return;
    void keeper.keep({ file, setup: chosen, answers: run.answers }).then((became) => run.note(became));
  }, [keeps_work.value, file, chosen]);

  const progress = run.progress.value;
  const is_begun = progress.answered + progress.refused > 0 || progress.state !== 'stopped';
  useLeaveQuestion(is_begun && progress.kept !== 'kept');
  // A run at its end keeps no more answers, by which it would learn that another tab has replaced it.
  useRefresh(
    async () => {
      if (await keeper.isReplaced(chosen.run_key)) run.note('replaced');
    },
    is_begun && progress.kept === 'kept',
  );

  return {
    ...{ file, run, progress, is_begun },
    take: (taken) => {
      setRun(new RowRun(keeper));
      setFile(taken);
    },
    restart: () => setRun(new RowRun(keeper)),
    remove: async () => {
      setRun(new RowRun(keeper));
      setFile(null);
      await keeper.forget();
    },
  };
}
