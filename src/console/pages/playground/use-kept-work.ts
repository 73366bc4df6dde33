import { useEffect, useState } from 'preact/hooks';
import { formatMoment } from '../format.ts';
import {
  KEPT_RUNS_MAX,
  type KeptRun,
  type KeptWork,
  keepRun,
  keeps_work,
  removeRequest,
  type SavedRequest,
  saveRequest,
} from './kept-work.ts';

/** The runs and named requests that are kept of somebody's work, and what adds to them. */
export interface KeptWorkState extends Omit<KeptWork, 'draft'> {
  readonly addRun: (run: Pick<KeptRun, 'body' | 'outcomes'>) => Promise<void>;
  readonly save: (name: string, body: string) => Promise<void>;
  /** Saves a request that another takes the place of, under the time as its name. */
  readonly saveReplaced: (body: string) => Promise<void>;
  readonly remove: (request: SavedRequest) => void;
}

/** Follows what was read at the start of the page. */
export function useKeptWork(scope: string, read: KeptWork): KeptWorkState {
  const [runs, setRuns] = useState(read.runs);
  const [requests, setRequests] = useState(read.requests);
  const is_kept = keeps_work.value;
  useEffect(() => {
    if (is_kept) return;
    setRuns([]);
    setRequests([]);
  }, [is_kept]);
  const save = async (name: string, body: string) => {
    if (!keeps_work.value) return;
    const request = { scope, name, at_ms: Date.now(), body };
    await saveRequest(request);
    setRequests((all) =>
      [...all.filter((one) => one.name !== name), request].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    );
  };
  return {
    runs,
    requests,
    addRun: async (run) => {
      if (!keeps_work.value) return;
      const kept = { scope, at_ms: Date.now(), ...run };
      setRuns((all) => [kept, ...all].slice(0, KEPT_RUNS_MAX));
      await keepRun(kept);
    },
    save,
    saveReplaced: (body) => save(`Draft of ${formatMoment(Date.now())}`, body),
    remove: (request) => {
      setRequests((all) => all.filter(({ name }) => name !== request.name));
      void removeRequest(request);
    },
  };
}
