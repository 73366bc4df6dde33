import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import type { TokenCount } from '../../api/playground.ts';
import { api, call } from '../client.ts';
import { useAfterPause } from '../use-after-pause.ts';
import { type Asked, runBody } from './use-runs.ts';

/** So long nothing may be changed before the service is asked. */
const PAUSE_MS = 600;

/** Tokens and price of all runs of a request. */
export interface RequestPrice {
  /** Billed tokens over all runs. */
  readonly input_tokens: number;
  readonly cost_usd: number;
  /** False where an upstream counts by itself: then the numbers are the most that it can be. */
  readonly is_exact: boolean;
  /** The run that reads least of the record. */
  readonly least_read: Pick<TokenCount, 'input_tokens' | 'record_tokens_left_out'>;
}

/** A request whose tokens can be counted, and the key that would ask it. */
export interface Countable {
  readonly organization_id: string;
  readonly key_id: string;
  readonly body: JsonObject<JsonValue>;
  readonly asked: Asked;
}

/**
 * Asks the service's planner what the request would cost, free of charge, whenever it was changed and nobody types.
 * Undefined until that is known, and where the request cannot be asked.
 */
export function useTokenCount(countable: Countable | null): RequestPrice | undefined {
  const key =
    countable === null
      ? null
      : `${countable.key_id} ${JSON.stringify(countable.asked)} ${writeJson(countable.body)}`;
  // A request that is refused has no price: the run says why.
  return useAfterPause(key, PAUSE_MS, async (signal) =>
    countable === null ? undefined : await countAll(countable, signal),
  );
}

async function countAll(
  { organization_id, key_id, body, asked: { models, modes } }: Countable,
  signal: AbortSignal,
): Promise<RequestPrice> {
  const route = api.organizations({ organization_id }).playground({ key_id }).tokens;
  const counts: TokenCount[] = [];
  for (const model of models) {
    for (const mode of modes) {
      const text = writeJson(runBody(body, { model, mode }));
      const options = { headers: { 'content-type': 'application/json' }, fetch: { signal } };
      counts.push(await call(route.post(text, options)));
    }
  }
  const [first] = counts.toSorted((a, b) => leftOut(b) - leftOut(a));
  if (first === undefined) throw new Error('Nothing was counted.');
  return {
    input_tokens: counts.reduce((sum, count) => sum + count.input_tokens, 0),
    cost_usd: counts.reduce((sum, count) => sum + count.cost_usd, 0),
    is_exact: counts.every(({ exact }) => exact),
    least_read: first,
  };
}

function leftOut({ record_tokens_left_out }: Pick<TokenCount, 'record_tokens_left_out'>): number {
  return record_tokens_left_out ?? 0;
}
