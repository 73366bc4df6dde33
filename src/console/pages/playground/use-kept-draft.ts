import { useEffect } from 'preact/hooks';
import { type KeptDraft, keepDraft, keeps_work } from './kept-work.ts';
import type { WrittenRequest } from './use-request.ts';

/** Keeps the request and what is chosen beside it, after each change, while the browser keeps work. */
export function useKeptDraft(
  scope: string,
  { draft, json, is_dirty, example, model, modes }: WrittenRequest,
  {
    compared_model,
    project_id,
    key_id,
  }: Required<Pick<KeptDraft, 'compared_model' | 'project_id' | 'key_id'>>,
): void {
  const is_kept = keeps_work.value;
  useEffect(() => {
    const chosen = { model, compared_model, modes, project_id, key_id };
    if (is_kept) void keepDraft(scope, { draft, json, is_dirty, example, ...chosen });
  }, [is_kept, scope, draft, json, is_dirty, example, model, compared_model, modes, project_id, key_id]);
}
