import { writeJson } from '../../../json/write-json.ts';
import { objectIn } from '../object-in.ts';
import type { Example } from './examples.ts';
import type { KeptRun, SavedRequest } from './kept-work.ts';
import { useReplacement } from './replace-dialog.tsx';
import type { KeptWorkState } from './use-kept-work.ts';
import { useLinkedRequest } from './use-linked-request.ts';
import type { WrittenRequest } from './use-request.ts';
import type { Runs } from './use-runs.ts';

export type Opening = ReturnType<typeof useOpening>;

/**
 * Opens examples, saved requests, earlier runs and linked requests in place of the one on the page. Asks before it
 * replaces one that somebody wrote, or saves it where a link brings another and the browser keeps it.
 */
export function useOpening(
  request: WrittenRequest,
  runs: Runs,
  kept: KeptWorkState,
  showAnswers: () => void,
) {
  const { is_dirty, body } = request;
  const { replace, ...replacing } = useReplacement(is_dirty);
  const open = (title: string, load: () => void) =>
    replace(title, () => {
      showAnswers();
      runs.clear();
      load();
    });
  const openBody = (text: string) => {
    const opened = objectIn(text);
    if (opened === null) request.takeJson(text);
    else request.open(opened);
    return opened;
  };
  const linked = useLinkedRequest(async (opened) => {
    const load = () => {
      runs.clear();
      request.open(opened);
    };
    const is_saved = is_dirty && body !== null && (await kept.saveReplaced(writeJson(body)));
    if (is_saved) load();
    else replace('Open the linked request?', load);
  });
  return {
    replacing,
    /** Says where the request of a link cannot be read. */
    linked,
    openExample: (example: Example) => open('Load the example?', () => request.loadExample(example)),
    openSaved: (saved: SavedRequest) => open('Open the saved request?', () => openBody(saved.body)),
    openRun: (run: KeptRun) =>
      open('Open the run?', () => {
        const opened = openBody(run.body);
        if (opened !== null) runs.showKept(opened, run.outcomes);
      }),
  };
}
