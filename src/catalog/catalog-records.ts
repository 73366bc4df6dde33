import type { Calibration } from '../../native/engine.ts';

export const MODEL_KINDS = ['decision', 'chat'] as const;
export const MODEL_STATUSES = ['live', 'coming_soon'] as const;

/** What stands in the place of a path for the weights that come with the program. */
export const EMBEDDED = 'embedded';

/** A model's weights, and what they were when the model was added. */
export interface ModelWeights {
  /** `EMBEDDED`, or the absolute path of a GGUF file (the first part of a split one). */
  readonly weights: string;
  /** SHA-256 over the parts in order, in hex. Null where any weights are taken: decision-1's follow the program. */
  readonly weights_sha256: string | null;
  /** The prompt profile; null where any is taken. */
  readonly profile: string | null;
}

/** How a service talks to an upstream. */
export const UPSTREAM_PROTOCOLS = ['systemone', 'llama-server', 'openai'] as const;
export type UpstreamProtocol = (typeof UPSTREAM_PROTOCOLS)[number];

/** Where plans for an upstream are made of: a GGUF file with the vocabulary of the upstream's model. */
export interface UpstreamVocabulary {
  /** The absolute path of a GGUF file, with or without tensors (the first part of a split one). */
  readonly path: string;
  /** As in `ModelWeights`, when the model was added. */
  readonly sha256: string;
  readonly profile: string;
}

/** Temperatures that were fitted on the answers of upstreams. */
export interface UpstreamCalibration extends Pick<Calibration, 'temperatures' | 'fitted_on'> {
  /** Of the upstreams when it was fitted, as `fingerprintOf` makes it: those of any other are not calibrated by it. */
  readonly fingerprint: string;
}

/** How one server of a pool is asked, where that differs from the others. */
export interface UpstreamMember {
  /** The absolute path of a file with its bearer token; absent for the pool's. */
  readonly token_file?: string;
  /** As `UpstreamPool.answer_ms`; absent for the pool's. */
  readonly answer_ms?: number;
  /** Its share of the calls, beside `UPSTREAM_WEIGHT` of a member that names none. */
  readonly weight?: number;
}

/** The weight of a member that names none. */
export const UPSTREAM_WEIGHT = 1;

/** The inference servers that answer for a model, in the place of weights. */
export interface UpstreamPool {
  readonly protocol: UpstreamProtocol;
  /** URLs without a slash at their end, each once. */
  readonly addresses: readonly string[];
  /** Those of them that get no new requests. */
  readonly draining: readonly string[];
  /** What the servers call the model; null where a request names none. */
  readonly model: string | null;
  /** Absolute paths: of a file with the bearer token, and of the certificates (PEM) that are trusted instead of the system's. */
  readonly token_file: string | null;
  readonly ca_file: string | null;
  /** How long a member may take to answer before another one is asked; absent for half of what a client waits. */
  readonly answer_ms?: number;
  /** By address; absent, like each of its entries, for members that are asked as the pool says. */
  readonly members?: Readonly<Record<string, UpstreamMember>>;
  /** For protocols that are sent tokens; absent for `systemone`. */
  readonly vocabulary?: UpstreamVocabulary;
  /** Absent where none was fitted. */
  readonly calibration?: UpstreamCalibration;
}

/** A model as the catalog knows it; price and context are null until a model opens. */
export interface CatalogModel {
  readonly id: string;
  readonly kind: (typeof MODEL_KINDS)[number];
  readonly status: (typeof MODEL_STATUSES)[number];
  readonly description: string;
  readonly context_tokens: number | null;
  readonly input_price_micros_per_million_tokens: number | null;
  readonly released_at_ms: number | null;
  /** As in `ModelWeights`; null for a model that no engine answers for. */
  readonly weights: string | null;
  readonly weights_sha256: string | null;
  readonly profile: string | null;
  /** Null for a model that no upstream answers for. */
  readonly upstreams: UpstreamPool | null;
}

/** Another name of a model. */
export interface ModelAlias {
  readonly alias: string;
  readonly model_id: string;
}

/** What is kept of models and their other names. */
export interface CatalogRecords {
  findModel(id: string): Promise<CatalogModel | undefined>;
  findModelByAlias(alias: string): Promise<CatalogModel | undefined>;
  /** All models by id. */
  allModels(): Promise<CatalogModel[]>;
  insertModel(model: CatalogModel): Promise<void>;
  /** Inserts the model unless there is one of its id, which stays as it is. Resolves with whether it was inserted. */
  insertModelIfMissing(model: CatalogModel): Promise<boolean>;
  updateModel(id: string, values: Partial<Omit<CatalogModel, 'id'>>): Promise<void>;
  /** Deletes the model with its aliases. */
  deleteModel(id: string): Promise<void>;

  findAlias(alias: string): Promise<ModelAlias | undefined>;
  /** All aliases by name. */
  allAliases(): Promise<ModelAlias[]>;
  /** Writes an alias, in the place of one of that name. */
  writeAlias(alias: ModelAlias): Promise<void>;
  deleteAlias(alias: string): Promise<void>;
}
