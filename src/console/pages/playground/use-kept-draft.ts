import { useEffect } from 'preact/hooks';
import { writeJson } from '../../../json/write-json.ts';
import { type KeptDraft, keepDraft, keeps_work } from './kept-work.ts';
import type { KeptWorkState } from './use-kept-work.ts';
import type { WrittenRequest } from './use-request.ts';

/**
 * Keeps the request and what is chosen beside it, after each change, while the browser keeps work. There is one
 * draft: that of another tab is saved when it is replaced, once for each tab, under the time of its opening.
 */
export function useKeptDraft(
  scope: string,
  { draft, json, body, is_dirty, example, model, modes }: WrittenRequest,
  {
    compared_model,
    project_id,
    key_id,
  }: Required<Pick<KeptDraft, 'compared_model' | 'project_id' | 'key_id'>>,
  onReplaced: KeptWorkState['noteSaved'],
): void {
  const is_kept = keeps_work.value;
  useEffect(() => {
    if (!is_kept) return;
    const chosen = { model, compared_model, modes, project_id, key_id };
    const request = json ?? (body === null ? '' : writeJson(body));
    const written = { request, tab_opened_at_ms: performance.timeOrigin };
    void keepDraft({ scope, draft: { draft, json, is_dirty, example, ...chosen, ...written }, onReplaced });
  }, [is_kept, scope, draft, json, is_dirty, example, model, compared_model, modes, project_id, key_id]);
}
