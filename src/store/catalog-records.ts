import type { Calibration } from '../../native/engine.ts';

export const MODEL_KINDS = ['decision', 'chat'] as const;
export const MODEL_STATUSES = ['live', 'coming_soon'] as const;

/** Stands for the weights that come with the program, in place of a path. */
export const EMBEDDED = 'embedded';

/** A model's weights, with their checksum and profile from when the model was added. */
export interface ModelWeights {
  /** `EMBEDDED`, or the absolute path of a GGUF file (the first part of a split one). */
  readonly weights: string;
  /**
   * SHA-256 over the parts in order, in hex. Null where any weights are accepted: those of decision-1 follow
   * the program.
   */
  readonly weights_sha256: string | null;
  /** The prompt profile; null where any is accepted. */
  readonly profile: string | null;
}

/** The protocols of upstreams. */
export const UPSTREAM_PROTOCOLS = ['systemone', 'llama-server', 'openai'] as const;
export type UpstreamProtocol = (typeof UPSTREAM_PROTOCOLS)[number];

/** The GGUF file with the vocabulary of the upstream's model, which plans are made with. */
export interface UpstreamVocabulary {
  /** The absolute path of a GGUF file, with or without tensors (the first part of a split one). */
  readonly path: string;
  /** As in `ModelWeights`. */
  readonly sha256: string;
  readonly profile: string;
}

/** Temperatures that were fitted on the answers of upstreams. */
export interface UpstreamCalibration extends Pick<Calibration, 'temperatures' | 'fitted_on'> {
  /** The fingerprint of the upstreams at the fit, by `fingerprintOf`. Others are not calibrated by it. */
  readonly fingerprint: string;
}

/** The settings of one server of a pool that differ from the pool's. */
export interface UpstreamMember {
  /** The absolute path of a file with its bearer token; absent for the pool's. */
  readonly token_file?: string;
  /** As `UpstreamPool.answer_ms`; absent for the pool's. */
  readonly answer_ms?: number;
  /** The share of the calls, relative to the other members; `UPSTREAM_WEIGHT` by default. */
  readonly weight?: number;
}

/** The default weight of a member. */
export const UPSTREAM_WEIGHT = 1;

/** The inference servers that answer for a model, in place of weights. */
export interface UpstreamPool {
  readonly protocol: UpstreamProtocol;
  /** URLs without a trailing slash, each once. */
  readonly addresses: readonly string[];
  /** The addresses that get no new requests. */
  readonly draining: readonly string[];
  /** The servers' name of the model; null where requests name none. */
  readonly model: string | null;
  /**
   * Absolute paths: of a file with the bearer token, and of the certificates (PEM) that are trusted instead
   * of the system's.
   */
  readonly token_file: string | null;
  readonly ca_file: string | null;
  /** The time for an answer, after which another member is asked; by default half of the client's timeout. */
  readonly answer_ms?: number;
  /** Settings by address; absent, like each of its entries, where the pool's apply. */
  readonly members?: Readonly<Record<string, UpstreamMember>>;
  /** Present for protocols that send tokens; absent for `systemone`. */
  readonly vocabulary?: UpstreamVocabulary;
  /** Absent where none was fitted. */
  readonly calibration?: UpstreamCalibration;
}

/** A model of the catalog; price and context are null until it opens. */
export interface CatalogModel {
  readonly id: string;
  readonly kind: (typeof MODEL_KINDS)[number];
  readonly status: (typeof MODEL_STATUSES)[number];
  readonly description: string;
  readonly context_tokens: number | null;
  readonly input_price_micros_per_million_tokens: number | null;
  readonly released_at_ms: number | null;
  /** As in `ModelWeights`; null for a model without an engine. */
  readonly weights: string | null;
  readonly weights_sha256: string | null;
  readonly profile: string | null;
  /** Null for a model without upstreams. */
  readonly upstreams: UpstreamPool | null;
  /** The model whose weights a tuned model shares; null for a model that is not tuned. */
  readonly base_id: string | null;
  /** The SHA-256 in hex of the text of its tuning; null for a model that is not tuned. */
  readonly tuning_sha256: string | null;
  /** The only organization that sees the model; null for all. */
  readonly organization_id: string | null;
}

/** Another name of a model. */
export interface ModelAlias {
  readonly alias: string;
  readonly model_id: string;
}

/** The corrections of a tuned model. */
export interface ModelTuning {
  readonly model_id: string;
  /** The text of a tuning file. */
  readonly tuning: string;
}

/** How often a tuned model gave one answer to one of its questions. */
export interface AnswerCount {
  /** The question's place in the tuning, from 0. */
  readonly question: number;
  /** The answer's place among the classes of `identityOf`. */
  readonly class: number;
  readonly answers: number;
}

/** The stored models and their aliases. */
export interface CatalogRecords {
  findModel(id: string): Promise<CatalogModel | undefined>;
  findModelByAlias(alias: string): Promise<CatalogModel | undefined>;
  /** Returns all models by id. */
  allModels(): Promise<CatalogModel[]>;
  insertModel(model: CatalogModel): Promise<void>;
  /** Inserts the model unless its id exists. Resolves with true if it was inserted. */
  insertModelIfMissing(model: CatalogModel): Promise<boolean>;
  updateModel(id: string, values: Partial<Omit<CatalogModel, 'id'>>): Promise<void>;
  /** Returns the text of a tuned model's tuning. */
  findTuning(model_id: string): Promise<string | undefined>;
  insertTuning(tuning: ModelTuning): Promise<void>;
  /** Adds counts of a model's answers to those of a UTC day. */
  addAnswerCounts(model_id: string, day: string, counts: readonly AnswerCount[]): Promise<void>;
  /** Returns the counts of a model's answers from a UTC day on, by question and class. */
  answerCounts(model_id: string, from_day: string): Promise<AnswerCount[]>;
  /** Deletes the counts of earlier days. */
  forgetAnswerCounts(before_day: string): Promise<void>;
  /** Deletes the model with its aliases, its tuning and the counts of its answers. */
  deleteModel(id: string): Promise<void>;

  findAlias(alias: string): Promise<ModelAlias | undefined>;
  /** Returns all aliases by name. */
  allAliases(): Promise<ModelAlias[]>;
  /** Writes an alias, replacing one of the same name. */
  writeAlias(alias: ModelAlias): Promise<void>;
  deleteAlias(alias: string): Promise<void>;
}
