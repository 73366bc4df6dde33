import { createHash } from 'node:crypto';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { readJson } from '../json/read-json.ts';
import { writeJson } from '../json/write-json.ts';
import type { UpstreamPool } from '../store/catalog-records.ts';

/** The facts about a model in an upstream's list of models. */
export interface ServerFacts {
  /** The fields that change with the model, as one text; empty where the list has none. */
  readonly model: string;
  /** The most tokens of a prompt and its answer; null where the list does not say. */
  readonly context_tokens: number | null;
}

export const NO_FACTS: ServerFacts = { model: '', context_tokens: null };

/**
 * The fields that identify a model, of llama-server, vLLM, SGLang, and servers of decisions. Times are left
 * out.
 */
const FIELDS = ['id', 'name', 'root', 'parent', 'release_date', 'digest', 'version'];
const META_FIELDS = ['vocab_type', 'n_vocab', 'n_ctx_train', 'n_embd', 'n_params', 'size', 'ftype'];

/** Returns the facts of the model in a list of models; of the first one where requests name none. */
export function serverFacts(list: string, model: string | null): ServerFacts {
  const entry = entryOf(parsed(list), model);
  if (entry === undefined) return NO_FACTS;
  const meta = entry.get('meta');
  const of_meta = isJsonObject(meta) ? meta : undefined;
  const values = [
    ...FIELDS.map((field) => entry.get(field) ?? null),
    ...META_FIELDS.map((field) => of_meta?.get(field) ?? null),
  ];
  const context = entry.get('max_model_len') ?? of_meta?.get('n_ctx');
  return { model: writeJson(values), context_tokens: typeof context === 'number' ? context : null };
}

function parsed(text: string): JsonValue | undefined {
  try {
    return readJson(text);
  } catch {
    // An unknown kind of list gives no facts; the server may answer all the same.
    return undefined;
  }
}

function entryOf(list: JsonValue | undefined, model: string | null): JsonObject<JsonValue> | undefined {
  if (!isJsonObject(list)) return undefined;
  const entries = [list.get('data'), list.get('models')].find(isJsonArray)?.filter(isJsonObject) ?? [];
  if (model === null) return entries[0];
  return entries.find((entry) => {
    const aliases = entry.get('aliases');
    const names = [entry.get('id'), entry.get('name'), ...(isJsonArray(aliases) ? aliases : [])];
    return names.includes(model);
  });
}

/**
 * Returns a fingerprint of the weights behind an upstream: a SHA-256 in hex. It covers the protocol, the name
 * of the model and the vocabulary of its plans. It also covers the reports of the server and its answers
 * about the model.
 */
export function fingerprintOf(
  { protocol, model, vocabulary }: UpstreamPool,
  facts: ServerFacts,
  of_answer: string,
): string {
  const parts = [
    protocol,
    model,
    vocabulary?.sha256 ?? null,
    vocabulary?.profile ?? null,
    facts.model,
    of_answer,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
