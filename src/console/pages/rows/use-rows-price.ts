import { microsOf } from '../../../contract/money.ts';
import { JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { api, call } from '../client.ts';
import { useAfterPause } from '../use-after-pause.ts';
import type { RowFile } from './row-file.ts';
import type { RowTask } from './row-run.ts';

/** So many rows are counted: those in the middle of as many parts of the rows by length. */
const COUNTED_ROWS = 12;
/** So long nothing may be changed before the service is asked. */
const PAUSE_MS = 400;

/** Tokens and price of a run over the rows of a file. */
export interface RowsPrice {
  readonly input_tokens: number;
  readonly cost_micros: number;
  /** False where rows stand for others. */
  readonly is_exact: boolean;
}

/**
 * Asks the service's planner, free of charge, what the rows would cost. Of many rows it counts some, each of which stands
 * for the rows of about its length. `setup` has all choices that the price depends on. Undefined until it is known, and
 * where nothing can be asked.
 */
export function useRowsPrice(
  task: RowTask | null,
  { rows }: Pick<RowFile, 'rows'>,
  setup: object,
): RowsPrice | undefined {
  // Rows that are refused have no price: the run says why.
  return useAfterPause(
    task === null ? null : JSON.stringify([task.key_id, rows.length, task.rows.length, setup]),
    PAUSE_MS,
    async (signal) => (task === null ? undefined : await priceOf(task, rows, signal)),
  );
}

async function priceOf(task: RowTask, rows: readonly string[], signal: AbortSignal): Promise<RowsPrice> {
  const { organization_id, key_id, setup, asked } = task;
  const { model, mode } = setup;
  const route = api.organizations({ organization_id }).playground({ key_id }).tokens;
  let input_tokens = 0;
  let cost_micros = 0;
  let is_exact = true;
  for (const { row, count } of sampleOf(task.rows, (number) => rows[number - 1]?.length ?? 0)) {
    const own = asked(row);
    if (own === null) continue;
    const body = new JsonObject<JsonValue>(
      ['model', 'mode', 'state', 'questions'],
      [model, mode, own.record, own.questions],
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
function sampleOf(
  rows: readonly number[],
  lengthOf: (row: number) => number,
): readonly { readonly row: number; readonly count: number }[] {
  const by_length = rows.toSorted((a, b) => lengthOf(a) - lengthOf(b));
  const parts = Math.min(COUNTED_ROWS, rows.length);
  const startOf = (part: number) => Math.floor((part * rows.length) / parts);
  return Array.from({ length: parts }, (_, part) => {
    const [start, end] = [startOf(part), startOf(part + 1)];
    return { row: by_length[(start + end) >> 1] ?? 0, count: end - start };
  });
}
