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
  /** All models of the list where requests name none, since an answer may name any of them. */
  readonly named: readonly NamedModel[];
}

interface NamedModel extends Pick<ServerFacts, 'model'> {
  readonly names: readonly string[];
}

export const NO_FACTS: ServerFacts = { model: '', context_tokens: null, named: [] };

/**
 * The fields that identify a model, of llama-server, vLLM, SGLang, and servers of decisions. Times are left
 * out.
 */
const FIELDS = ['id', 'name', 'root', 'parent', 'release_date', 'digest', 'version'];
const META_FIELDS = ['vocab_type', 'n_vocab', 'n_ctx_train', 'n_embd', 'n_params', 'size', 'ftype'];

/** Returns the facts of the model in a list of models; of the first one where requests name none. */
export function serverFacts(list: string, model: string | null): ServerFacts {
  const entries = entriesOf(parsed(list));
  const entry = model === null ? entries[0] : entries.find((one) => namesOf(one).includes(model));
  if (entry === undefined) return NO_FACTS;
  const context = entry.get('max_model_len') ?? metaOf(entry)?.get('n_ctx');
  return {
    model: identityOf(entry),
    context_tokens: typeof context === 'number' ? context : null,
    named: model === null ? entries.map((one) => ({ names: namesOf(one), model: identityOf(one) })) : [],
  };
}

/** Returns the facts of the model that an answer names, if the list has it and requests name none. */
export function factsNamed(facts: ServerFacts, name: string | null): ServerFacts {
  const { model } = facts.named.find(({ names }) => name !== null && names.includes(name)) ?? facts;
  return { ...facts, model };
}

function identityOf(entry: JsonObject<JsonValue>): string {
  const meta = metaOf(entry);
  return writeJson([
    ...FIELDS.map((field) => entry.get(field) ?? null),
    ...META_FIELDS.map((field) => meta?.get(field) ?? null),
  ]);
}

function metaOf(entry: JsonObject<JsonValue>): JsonObject<JsonValue> | undefined {
  const meta = entry.get('meta');
  return isJsonObject(meta) ? meta : undefined;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return readJson(text);
  } catch {
    // An unknown kind of list gives no facts; the server may answer all the same.
    return undefined;
  }
}

function entriesOf(list: JsonValue | undefined): readonly JsonObject<JsonValue>[] {
  if (!isJsonObject(list)) return [];
  return [list.get('data'), list.get('models')].find(isJsonArray)?.filter(isJsonObject) ?? [];
}

function namesOf(entry: JsonObject<JsonValue>): readonly string[] {
  const aliases = entry.get('aliases');
  const names = [entry.get('id'), entry.get('name'), ...(isJsonArray(aliases) ? aliases : [])];
  return names.filter((name) => typeof name === 'string');
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
