import { createHash } from 'node:crypto';
import type { UpstreamPool } from '../catalog/catalog-records.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { readJson } from '../json/read-json.ts';
import { writeJson } from '../json/write-json.ts';

/** What an upstream's list of models says of the one that it is asked for. */
export interface ServerFacts {
  /** What changes when the model does, as one text; empty where the list says nothing. */
  readonly model: string;
  /** The most tokens of a prompt and its answer; null where the list does not say. */
  readonly context_tokens: number | null;
}

export const NO_FACTS: ServerFacts = { model: '', context_tokens: null };

/** Fields that tell models apart, of llama-server, vLLM, SGLang, and servers of decisions. Times are none of them. */
const FIELDS = ['id', 'name', 'root', 'parent', 'release_date', 'digest', 'version'];
const META_FIELDS = ['vocab_type', 'n_vocab', 'n_ctx_train', 'n_embd', 'n_params', 'size', 'ftype'];

/** The facts of the model in a list of models; of the first one where requests name none. */
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
    // A list of another kind tells nothing; the server may answer all the same.
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
 * What stands for the weights behind an upstream: a SHA-256 in hex. It is over the protocol, the name of the model and
 * the vocabulary of its plans. What the server and its answers say of the model is in it too.
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
