import { setImmediate } from 'node:timers/promises';
import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { AccountError } from '../../access/account-error.ts';
import {
  addOwnModel,
  listOwnModels,
  removeOwnModel,
  requireRoomForOwnModel,
} from '../../catalog/own-models.ts';
import { Refusal } from '../../errors/errors.ts';
import { BODY_BYTES_MAX, readBytes } from '../../http/body-bytes.ts';
import { writeJson } from '../../json/write-json.ts';
import type { Question } from '../../questions/question.ts';
import { answerDrifts } from '../../served-models/answer-drifts.ts';
import { ModelUnavailable, ModelWarmingUp } from '../../served-models/model-answerer.ts';
import { findTuningBase } from '../../served-models/tuning-base.ts';
import { tuningSha256 } from '../../served-models/tunings.ts';
import type { CatalogModel } from '../../store/catalog-records.ts';
import { identityOf } from '../../tuning/question-identity.ts';
import { STABILITY_INDEX_MAX } from '../../tuning/stability-index.ts';
import { readTuningInSlices, type TuningHeader, TuningUnusable } from '../../tuning/tuning-file.ts';
import { refusedByPort } from './refusals.ts';
import {
  answerOf,
  Done,
  done,
  listOf,
  Micros,
  ModeSchema,
  nullable,
  OrganizationParams,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

const PREFIX = '/organizations/:organization_id/own-models';

const Drift = answerOf({
  question: Type.String({ description: 'Its instructions; as JSON where they are no text.' }),
  mode: ModeSchema,
  index: Type.Number({ description: 'The population stability index, less the part that chance explains.' }),
  has_moved: Type.Boolean(),
  labels: Type.Integer(),
  answers: Type.Integer(),
  classes: listOf(answerOf({ name: Type.String(), share_at_tuning: Type.Number(), share: Type.Number() })),
});

const OwnModel = answerOf({
  id: Type.String(),
  /** The model whose answers it corrects. */
  base_id: nullable(Type.String()),
  context_tokens: nullable(Type.Integer()),
  input_price_micros_per_million_tokens: nullable(Micros),
  added_at_ms: nullable(Time),
  /** The tuned questions with enough answers in the last seven days, beside those at their tuning. */
  drifts: listOf(Drift),
});

/** Returns the routes of an organization's own models: list and remove. An id has its place in the body, as it may have a slash. */
export function ownModelRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: PREFIX })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params: { organization_id } }) => {
        const models = await listOwnModels(services.store, actor, organization_id);
        const items = models.map(async (model) => ({
          id: model.id,
          base_id: model.base_id,
          context_tokens: model.context_tokens,
          input_price_micros_per_million_tokens: model.input_price_micros_per_million_tokens,
          added_at_ms: model.released_at_ms,
          drifts: await driftsOf(services, model),
        }));
        return { items: await Promise.all(items) };
      },
      { params: OrganizationParams, response: answerOf({ items: listOf(OwnModel) }) },
    )
    .delete(
      '/',
      async ({ actor, params: { organization_id }, body: { id } }) => {
        await removeOwnModel(services, actor, { organization_id, id });
        return await done(services.operation.followCatalog());
      },
      {
        params: OrganizationParams,
        body: Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) }),
        response: Done,
      },
    );
}

/**
 * Returns the route that adds a model of the organization: the body is the text of a tuning, larger than that of any other
 * change. The tuned model has to be one that the organization can ask.
 */
export function ownModelAddingRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: PREFIX }).use(signedIn(services)).post(
    '/',
    async ({ actor, request, params: { organization_id }, query: { name } }) => {
      await requireRoomForOwnModel(services.store, actor, { organization_id, name }, services.clock.now_ms());
      const tuning = await readText(services, request, organization_id);
      const base_id = await baseOf(services, organization_id, await headerOf(tuning));
      const source = { base_id, tuning_sha256: tuningSha256(tuning), tuning };
      const { id } = await addOwnModel(services, actor, { organization_id, name, ...source });
      await services.operation.followCatalog();
      return { id };
    },
    {
      // The tuning is read as text.
      parse: 'none',
      params: OrganizationParams,
      query: Type.Object({ name: Type.String({ maxLength: 1_000 }) }),
      response: answerOf({ id: Type.String() }),
    },
  );
}

async function readText(
  { body_limits }: ConsoleServices,
  request: Request,
  organization_id: string,
): Promise<string> {
  const bytes = await readBytes(request, { organization_id }, body_limits);
  if (bytes instanceof Refusal) {
    if (bytes.code !== 'request_too_large') throw refusedByPort(bytes);
    throw unusable(
      `The tuning is larger than ${BODY_BYTES_MAX / 1_048_576} MB: the operator of this service can add it.`,
    );
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // As any other file that is no text.
    return '';
  }
}

/** Returns no drifts for a tuning that cannot be read: requests tell of that, and the model can still be removed here. */
async function driftsOf(
  { store, operation, clock }: ConsoleServices,
  { id, tuning_sha256 }: CatalogModel,
): Promise<Static<typeof Drift>[]> {
  if (tuning_sha256 === null) return [];
  const readEntries = () => operation.models.tuningEntries({ id, tuning_sha256 }).catch(() => []);
  const drifts = await answerDrifts(store.catalog, id, readEntries, clock.now_ms());
  return drifts.map(({ entry: { question, mode }, at_tuning, now, index }) => ({
    question: textOf(question),
    ...{ mode, index, has_moved: index > STABILITY_INDEX_MAX },
    ...{ labels: at_tuning.answers, answers: now.answers },
    classes: identityOf(question).classes.map((name, at) => ({
      name,
      share_at_tuning: at_tuning.shares[at] ?? 0,
      share: now.shares[at] ?? 0,
    })),
  }));
}

function textOf({ instructions = '' }: Question): string {
  return typeof instructions === 'string' ? instructions : writeJson(instructions);
}

async function headerOf(tuning: string): Promise<TuningHeader> {
  try {
    return (await readTuningInSlices(tuning, () => setImmediate())).header;
  } catch (error) {
    if (error instanceof TuningUnusable) throw unusable(`The file ${error.message}.`);
    throw error;
  }
}

function unusable(message: string): AccountError {
  return new AccountError('unusable_tuning', message);
}

async function baseOf(
  { decisions, operation }: ConsoleServices,
  organization_id: string,
  header: TuningHeader,
): Promise<string> {
  const candidates = await decisions.catalog.listDecisionModelsOf(organization_id);
  try {
    const base = await findTuningBase(operation.models, candidates, header);
    if (base === undefined) throw new AccountError('unusable_tuning');
    return base.id;
  } catch (error) {
    if (error instanceof ModelWarmingUp) {
      throw refusedByPort(new Refusal('model_warming_up', { retry_after_s: error.retry_after_s }));
    }
    if (error instanceof ModelUnavailable) throw refusedByPort(new Refusal('model_unavailable'));
    throw error;
  }
}
