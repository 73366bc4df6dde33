import { readFile } from 'node:fs/promises';
import { checkModel, SetupError } from '../../native/engine.ts';
import type { NewTuning } from '../catalog/changes.ts';
import type { ModelConfig } from '../config/settings.ts';
import { errorMessage } from '../errors/error-message.ts';
import { tuningSha256 } from '../served-models/tunings.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import { readTuning, type TuningContent, type TuningHeader, TuningUnusable } from '../tuning/tuning-file.ts';
import { upstreamFacts } from './catalog-model.ts';
import type { DataContext, DataOptions } from './command.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';
import { organizationId } from './lookup.ts';
import { openOptionsOf } from './served-models.ts';

/** The options of the database and of models; `--model` is that of `tds serve`. */
type TuningOptions = DataOptions & ModelConfig;

/** A tuning that fits a model of the catalog, and that model. */
export interface CheckedTuning {
  readonly source: NewTuning;
  readonly base: CatalogModel;
}

/**
 * Reads a tuning file and finds the model that it was fitted on by weights and profile. Throws `CommandFailed` where
 * the file cannot be used or no model has these; rejects with `not_found` for an unknown organization.
 */
export async function checkTuning(
  context: DataContext,
  path: string,
  { organization, ...options }: TuningOptions & { readonly organization?: string | undefined },
): Promise<CheckedTuning> {
  const text = await textOf(path);
  const { header, entries } = contentOf(path, text);
  const organization_id = organization === undefined ? null : await organizationId(context, organization);
  const base = await baseOf(await context.store.catalog.allModels(), header, options);
  if (base === undefined) {
    throw new CommandFailed(
      `${path} was fitted on weights that no model of the catalog has (SHA-256 ${header.weights_sha256} by ${header.profile}): add the model first, give the --model of "tds serve", or tune again.`,
    );
  }
  if (base.upstreams !== null && entries.some(({ vector }) => vector !== null)) {
    throw new CommandFailed(
      `${path} has vectors on hidden states, which the upstreams of ${base.id} do not give: tune again by "tds tune --model ${base.id}".`,
    );
  }
  const source = { base_id: base.id, tuning_sha256: tuningSha256(text), organization_id, tuning: text };
  return { source, base };
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read (${errorMessage(error)}): give a file of "tds tune".`, {
      cause: error,
    });
  }
}

function contentOf(path: string, text: string): TuningContent {
  try {
    return readTuning(text);
  } catch (error) {
    if (!(error instanceof TuningUnusable)) throw error;
    throw new CommandFailed(`${path} ${error.message}.`, { cause: error });
  }
}

/** The model that was tuned where it is there, and any other of the same weights else. Asks the upstreams of that one only. */
async function baseOf(
  models: readonly CatalogModel[],
  header: TuningHeader,
  options: TuningOptions,
): Promise<CatalogModel | undefined> {
  const named = models.find(({ id }) => id === header.model);
  if (named !== undefined && (await isTuned(named, header, options))) return named;
  for (const model of models) if (await hasWeights(model, header, options)) return model;
  return undefined;
}

/** Returns true if a model's weights, or its upstreams, are those that were tuned. */
async function isTuned(
  model: CatalogModel,
  fitted_on: TuningHeader,
  options: TuningOptions,
): Promise<boolean> {
  if (model.upstreams === null) return await hasWeights(model, fitted_on, options);
  const { weights_sha256, profile } = await upstreamFacts(model, model.upstreams, options);
  return weights_sha256 === fitted_on.weights_sha256 && profile === fitted_on.profile;
}

/** Returns true if the model's weights are those that were tuned; one that takes any has those of now. */
async function hasWeights(
  { weights, ...model }: CatalogModel,
  fitted_on: TuningHeader,
  options: TuningOptions,
): Promise<boolean> {
  if (weights === null) return false;
  const { model_path, expected } = openOptionsOf({ ...model, weights }, options);
  const { weights_sha256 = null, profile = null } = expected ?? {};
  const is_told = weights_sha256 !== null && profile !== null;
  const own = is_told
    ? { weights_sha256, profile }
    : await inOneSentence([SetupError], () => checkModel({ model_path }));
  return own.weights_sha256 === fitted_on.weights_sha256 && own.profile === fitted_on.profile;
}
