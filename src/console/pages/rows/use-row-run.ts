import { useEffect, useState } from 'preact/hooks';
import { keeps_work } from '../playground/kept-work.ts';
import { forgetAnswers, forgetRows, type KeptRows, keepRows } from './kept-rows.ts';
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
  /** Forgets the answers. */
  readonly restart: () => Promise<void>;
  /** Forgets the file and its answers. */
  readonly remove: () => Promise<void>;
}

/** Follows the file and the run that the browser keeps under a scope; `kept` is what it had at the start of the page. */
export function useRowRun(scope: string, kept: KeptRows | null): RowRunState {
  const [file, setFile] = useState<RowFile | null>(kept?.file ?? null);
  const [run, setRun] = useState(() => new RowRun(scope, kept?.answers));
  useEffect(() => () => run.leave(), [run]);

  const is_kept = keeps_work.value;
  useEffect(() => {
    if (!is_kept || file === null || file === kept?.file) return;
    void keepRows(scope, file, run.answers).then((are_kept) => are_kept || run.noteUnkept());
  }, [is_kept, scope, file]);

  const progress = run.progress.value;
  const is_begun = progress.answered + progress.refused > 0 || progress.state !== 'stopped';
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    if (!is_begun || (is_kept && progress.is_kept)) return;
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [is_begun, is_kept, progress.is_kept]);

  return {
    ...{ file, run, progress, is_begun },
    take: (taken) => {
      setRun(new RowRun(scope));
      setFile(taken);
    },
    restart: async () => {
      setRun(new RowRun(scope));
      await forgetAnswers(scope);
    },
    remove: async () => {
      setRun(new RowRun(scope));
      setFile(null);
      await forgetRows(scope);
    },
  };
}
