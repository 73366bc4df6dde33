import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  calibrationPath,
  type DecisionInput,
  EMBEDDED_WEIGHTS,
  type OpenOptions,
  openEngine,
  openScoringPlanner,
  PlanRejected,
  readCalibration,
} from '../../native/engine.ts';
import { OPERATOR } from '../access/actor.ts';
import { setUpstreamCalibration } from '../catalog/changes.ts';
import { isPostgres } from '../config/database-address.ts';
import { openOptions, vocabularyOptions } from '../config/open-options.ts';
import type { ModelConfig } from '../config/settings.ts';
import { errorMessage } from '../errors/error-message.ts';
import { type MeasuredModel, measuredEngine } from '../eval/measured-model.ts';
import { IS_UNPACKED } from '../files/project-root.ts';
import type { Mode } from '../questions/question.ts';
import type { TypeTemperatures } from '../questions/temperatures.ts';
import { healthProbeInput } from '../served-models/health-probe.ts';
import type { CatalogModel, UpstreamPool } from '../store/catalog-records.ts';
import { Tuning } from '../tuning/tuning.ts';
import { type FingerprintedAnswer, UpstreamModel } from '../upstreams/upstream-model.ts';
import { type DataOptions, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { DATABASE_FILE } from './data-directory.ts';
import type { CaseRunOptions } from './eval-runs.ts';
import { openOptionsOf } from './served-models.ts';
import { type FittedCalibration, writeCalibration } from './write-calibration.ts';
import { requireWritable } from './write-whole-file.ts';

/** A calibration that was stored. */
export interface KeptCalibration {
  /** The place, for people. */
  readonly place: string;
  /** True where a running service has the new calibration only after a reload of the model. */
  readonly needs_reload: boolean;
}

/** Stores a calibration. */
export type KeepCalibration = (fitted: FittedCalibration) => Promise<KeptCalibration>;

/** A model to measure or calibrate: weights at a path, or a model of the catalog. */
export interface ChosenModel extends MeasuredModel {
  /** Its id in the catalog; null for a file. */
  readonly id: string | null;
  /** The corrections of a tuned model, whose scores are those of its base; null for other models. */
  readonly tuning: Tuning | null;
  /** Returns the temperatures of its present calibration; undefined where there is none for its weights. */
  temperatures(mode: Mode): Promise<TypeTemperatures | undefined>;
  /**
   * Resolves with what stores a calibration where a service finds it. Rejects with `CommandFailed` where that cannot be
   * written. Null where nothing written would stay.
   */
  readonly calibrationKeeper: (() => Promise<KeepCalibration>) | null;
}

/**
 * Opens the model of `--model`: a GGUF file, or else a model of the catalog. Rejects with `SetupError` and
 * `CommandFailed`.
 */
export async function openChosenModel(options: CaseRunOptions): Promise<ChosenModel> {
  const row = await rowOf(options);
  if (row !== undefined && row.base_id !== null) return await openTuned(row.id, row.base_id, options);
  if (row?.upstreams != null) return await openUpstreams(row, row.upstreams, options);
  if (row === undefined) return await openWeights(null, openOptions(options));
  const { id, weights } = row;
  const { servedModel } = options;
  if (weights === null) throw new CommandFailed(`${id} has neither weights nor upstreams.`);
  return await openWeights(
    id,
    openOptionsOf({ ...row, weights }, { ...options, model: isFile(servedModel) ? servedModel : undefined }),
  );
}

function isFile(path: string | undefined): boolean {
  return path !== undefined && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * Returns the catalog's model of that id; undefined where the name is a file's, or unknown to the catalog.
 */
async function rowOf(options: CaseRunOptions): Promise<CatalogModel | undefined> {
  const { model, data, database } = options;
  if (model === undefined || isFile(model)) return undefined;
  if (!isPostgres(database) && !existsSync(join(data, DATABASE_FILE))) return undefined;
  return await withData(options, ({ store }) => store.catalog.findModel(model));
}

/** Opens the base of a tuned model, which answers by its scores. */
async function openTuned(id: string, base_id: string, options: CaseRunOptions): Promise<ChosenModel> {
  const text = await withData(options, ({ store }) => store.catalog.findTuning(id));
  if (text === undefined) throw new CommandFailed(`${id} has no tuning.`);
  const tuning = Tuning.read(text);
  const base = await openChosenModel({ ...options, model: base_id });
  if (tuning.weights_sha256 !== base.facts.weights_sha256 || tuning.profile !== base.facts.profile) {
    await base.close();
    throw new CommandFailed(
      `${id} was tuned on other weights than ${base_id} has now: tune again, or name those of "tds serve --model" in TDS_MODEL.`,
    );
  }
  return { ...base, id, tuning };
}

/** Throws `CommandFailed` for a tuned model, which can only be measured. `deed` names what is done to its base. */
export function requireUntuned({ id, tuning }: ChosenModel, deed: 'calibrate' | 'tune'): void {
  if (tuning !== null) throw new CommandFailed(`${id} is a tuned model: ${deed} its base instead.`);
}

async function openWeights(id: string | null, options: OpenOptions): Promise<ChosenModel> {
  const engine = await openEngine({ ...options, calibration: 'none' });
  const { model_path: first = EMBEDDED_WEIGHTS } = options;
  const { profile, weights_sha256 } = engine.facts;
  // The next start of an executable repairs every file that it unpacked.
  const is_repaired = IS_UNPACKED && dirname(resolve(first)) === dirname(EMBEDDED_WEIGHTS);
  const calibrationKeeper = async (): Promise<KeepCalibration> => {
    const to = calibrationPath(first);
    await requireWritable(to);
    return async (fitted) => {
      await writeCalibration(to, { profile, weights_sha256, ...fitted });
      return { place: to, needs_reload: true };
    };
  };
  return {
    ...measuredEngine(engine),
    id,
    tuning: null,
    temperatures: async (mode) => (await readCalibration(first, profile, weights_sha256))?.temperatures[mode],
    calibrationKeeper: is_repaired ? null : calibrationKeeper,
  };
}

/** Returns the fingerprint of a model's upstreams as its checksum, and its profile. Rejects with `CommandFailed`. */
export async function upstreamFacts(
  row: CatalogModel,
  upstreams: UpstreamPool,
  options: UpstreamsOptions,
): Promise<Pick<ChosenModel['facts'], 'weights_sha256' | 'profile'>> {
  const model = await openUpstreams(row, upstreams, options);
  await model.close();
  return model.facts;
}

/** The options of the database, and of the vocabularies of upstreams. */
export type UpstreamsOptions = DataOptions & Omit<ModelConfig, 'model'>;

/** Opens upstreams, which must all have the same weights, as far as visible. */
async function openUpstreams(
  row: CatalogModel,
  upstreams: UpstreamPool,
  options: UpstreamsOptions,
): Promise<ChosenModel> {
  const { id } = row;
  const { calibration, protocol } = upstreams;
  const context_tokens = row.context_tokens ?? 1;
  const problems: unknown[] = [];
  const model = new UpstreamModel(
    { id, context_tokens, input_price_micros_per_million_tokens: 0, upstreams },
    {
      now_ms: () => performance.now(),
      openPlanner: (vocabulary, tokens) => openScoringPlanner(vocabularyOptions(vocabulary, tokens, options)),
      onProblem: (error) => problems.push(error),
    },
  );
  const ask = async (input: DecisionInput): Promise<FingerprintedAnswer> => {
    return await model.measure(await model.plan(input), { scope: 'eval' });
  };
  try {
    // A request waits for a large vocabulary at most as long as a client; this command waits until it is
    // loaded.
    await model.load();
    const { fingerprint } = await ask(healthProbeInput('consistent'));
    if (fingerprint === null) throw new CommandFailed(otherModels(id));
    return {
      id,
      tuning: null,
      facts: {
        weights_sha256: fingerprint,
        profile: model.profile,
        context_tokens,
        evaluator: protocol,
        device: 'upstreams',
        temperatures: null,
        reads_states: false,
      },
      async answer(input) {
        const answered = await ask(input).catch((error: unknown) => {
          if (error instanceof PlanRejected) throw error;
          throw new CommandFailed(
            `${noAnswer(id, problems.at(-1) ?? error)} The same command goes on from here.`,
            { cause: error },
          );
        });
        // A calibration that was fitted on two models fits neither.
        if (answered.fingerprint !== fingerprint) throw new CommandFailed(otherModels(id));
        return answered;
      },
      temperatures: (mode) =>
        Promise.resolve(
          calibration?.fingerprint === fingerprint ? calibration.temperatures[mode] : undefined,
        ),
      calibrationKeeper: () =>
        Promise.resolve(async (fitted) => {
          await withData(options, (context) =>
            setUpstreamCalibration(context, OPERATOR, row, { fingerprint, ...fitted }),
          );
          return { place: `of ${id} in the catalog`, needs_reload: false };
        }),
      close: () => model.close(),
    };
  } catch (error) {
    await model.close();
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(noAnswer(id, problems.at(-1) ?? error), { cause: error });
  }
}

function noAnswer(id: string, error: unknown): string {
  return `The upstreams of ${id} do not answer: ${errorMessage(error)}`;
}

function otherModels(id: string): string {
  return `The upstreams of ${id} do not have one model, or do not say which: take those that differ out by "tds model drain".`;
}
