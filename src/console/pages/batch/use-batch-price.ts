import { microsOf } from '../../../contract/money.ts';
import { JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { api, call } from '../client.ts';
import { useAfterPause } from '../use-after-pause.ts';
import type { BatchTask } from './batch-run.ts';
import { recordOf } from './row-file.ts';

/** So many rows are counted: those in the middle of as many parts of the rows by length. */
const COUNTED_ROWS = 12;
/** So long nothing may be changed before the service is asked. */
const PAUSE_MS = 400;

/** Tokens and price of a batch. */
export interface BatchPrice {
  readonly input_tokens: number;
  readonly cost_micros: number;
  /** False where rows stand for others. */
  readonly is_exact: boolean;
}

/**
 * Asks the service's planner, free of charge, what the rows would cost. Of many rows it counts some, each of which stands
 * for the rows of about its length. Undefined until that is known, and where nothing can be asked.
 */
export function useBatchPrice(task: BatchTask | null): BatchPrice | undefined {
  // A batch that is refused has no price: the run says why.
  return useAfterPause(task === null ? null : priceKey(task), PAUSE_MS, async (signal) =>
    task === null ? undefined : await priceOf(task, signal),
  );
}

function priceKey({ key_id, questions, setup, file }: BatchTask): string {
  const { run_key, column, model, mode } = setup;
  return JSON.stringify([key_id, run_key, column, model, mode, file.rows.length, writeJson(questions)]);
}

async function priceOf(task: BatchTask, signal: AbortSignal): Promise<BatchPrice> {
  const { organization_id, key_id, file, questions, setup } = task;
  const { model, mode, column } = setup;
  const route = api.organizations({ organization_id }).playground({ key_id }).tokens;
  let input_tokens = 0;
  let cost_micros = 0;
  let is_exact = true;
  for (const { row, count } of sampleOf(file.rows)) {
    const record = recordOf(row, column);
    if (record === null) continue;
    const body = new JsonObject<JsonValue>(
      ['model', 'mode', 'state', 'questions'],
      [model, mode, record, questions],
    );
    const options = { headers: { 'content-type': 'application/json' }, fetch: { signal } };
    const counted = await call(route.post(writeJson(body), options));
    input_tokens += counted.input_tokens * count;
    cost_micros += microsOf(counted.cost_usd) * count;
    is_exact &&= counted.exact && count === 1;
  }
  return { input_tokens, cost_micros, is_exact };
}

/** Returns rows of all lengths, and for how many each stands: all of them where they are few. */
function sampleOf(rows: readonly string[]): readonly { readonly row: string; readonly count: number }[] {
  const by_length = rows.toSorted((a, b) => a.length - b.length);
  const parts = Math.min(COUNTED_ROWS, rows.length);
  const startOf = (part: number) => Math.floor((part * rows.length) / parts);
  return Array.from({ length: parts }, (_, part) => {
    const [start, end] = [startOf(part), startOf(part + 1)];
    return { row: by_length[(start + end) >> 1] ?? '', count: end - start };
  });
}
