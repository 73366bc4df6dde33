import { useEffect, useState } from 'preact/hooks';
import {
  draftName,
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
  /** Resolves with false where the browser keeps nothing. */
  readonly save: (name: string, body: string) => Promise<boolean>;
  /** Does the same with a request that another takes the place of, under the time of now as its name. */
  readonly saveReplaced: (body: string) => Promise<boolean>;
  /** Notes a request that is saved already. */
  readonly noteSaved: (request: SavedRequest) => void;
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
  const noteSaved = (request: SavedRequest) =>
    setRequests((all) =>
      [...all.filter(({ name }) => name !== request.name), request].toSorted((a, b) =>
        a.name < b.name ? -1 : 1,
      ),
    );
  const save = async (name: string, body: string) => {
    if (!keeps_work.value) return false;
    const request = { scope, name, at_ms: Date.now(), body };
    const is_saved = await saveRequest(request);
    noteSaved(request);
    return is_saved;
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
    saveReplaced: (body) => save(draftName(Date.now()), body),
    noteSaved,
    remove: (request) => {
      setRequests((all) => all.filter(({ name }) => name !== request.name));
      void removeRequest(request);
    },
  };
}
