import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { AccountError } from '../../../access/account-error.ts';
import type { Actor } from '../../../access/actor.ts';
import { Catalog, isServed } from '../../../catalog/catalog.ts';
import { closeModel, listModelAliases, openModel, setModelPrice } from '../../../catalog/changes.ts';
import { oneOf } from '../../../json/one-of.ts';
import { LIFECYCLE_STATES } from '../../../served-models/model-answerer.ts';
import { MODEL_KINDS, MODEL_STATUSES } from '../../../store/catalog-records.ts';
import { answerOf, Done, done, listOf, Micros, nullable, only, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { Queue } from './live.ts';
import { operatorOnly } from './operator-only.ts';

/** An id may contain a slash, so every change has it in its body. */
const ModelId = Type.String({ minLength: 1, maxLength: 100 });

const Model = answerOf({
  id: Type.String(),
  kind: oneOf(MODEL_KINDS),
  status: oneOf(MODEL_STATUSES),
  description: Type.String(),
  aliases: listOf(Type.String()),
  context_tokens: nullable(Type.Integer()),
  input_price_micros_per_million_tokens: nullable(Micros),
  released_at_ms: nullable(Time),
  has_weights: Type.Boolean({ description: 'Whether an engine answers for it, so that it can be opened.' }),
  engine: nullable(
    answerOf({
      state: oneOf(LIFECYCLE_STATES),
      load_error: nullable(Type.String()),
      load: Queue,
    }),
  ),
  drift_index: nullable(
    Type.Number({
      description: "The largest stability index of a tuned model's questions, as this node knows.",
    }),
  ),
  reload: nullable(
    answerOf({
      state: oneOf(['running', 'done', 'failed']),
      started_at_ms: Time,
      ended_at_ms: nullable(Time),
      error: nullable(Type.String()),
    }),
  ),
});

/** Returns the routes of the models: their state, price and openness. */
export function modelRoutes(services: ConsoleServices) {
  const { store, operation } = services;
  /** Rejects with `not_found` for a model that the catalog does not have. */
  const requireModel = async (id: string) => {
    if ((await store.catalog.findModel(id)) === undefined) {
      throw new AccountError('not_found', 'There is no such model.');
    }
  };
  return new Elysia({ prefix: '/models' })
    .use(operatorOnly(services))
    .get('/', async ({ operator }) => ({ items: await listModels(services, operator) }), {
      response: answerOf({ items: listOf(Model) }),
    })
    .post(
      '/price',
      async ({ operator, body: { id, price_micros } }) => {
        await requireModel(id);
        return await done(setModelPrice(services, operator, id, price_micros));
      },
      {
        body: Type.Object({ id: ModelId, price_micros: Type.Integer({ minimum: 0 }) }),
        response: Done,
      },
    )
    .post(
      '/open',
      async ({ operator, body: { id } }) => {
        await requireModel(id);
        await openModel(services, operator, id);
        return await done(operation.followCatalog());
      },
      { body: Type.Object({ id: ModelId }), response: Done },
    )
    .post(
      '/close',
      async ({ operator, body: { id } }) => {
        await requireModel(id);
        await closeModel(services, operator, id);
        return await done(operation.followCatalog());
      },
      { body: Type.Object({ id: ModelId }), response: Done },
    )
    .post('/reload', ({ operator, body: { id } }) => done(operation.reloads.begin(operator, id)), {
      body: Type.Object({ id: ModelId }),
      response: Done,
    });
}

async function listModels(
  { store, operation: { models, answer_counts, reloads } }: ConsoleServices,
  operator: Actor,
): Promise<Static<typeof Model>[]> {
  const aliases = await listModelAliases(store);
  const states = models.states();
  const drifts = new Map(answer_counts.drifts().map((drift) => [drift.model, drift.index]));
  return (await new Catalog(store.catalog).list()).map((model) => {
    const { id } = model;
    const engine = states.find((one) => one.id === id);
    return only(Model, {
      ...model,
      aliases: aliases.filter(({ model_id }) => model_id === id).map(({ alias }) => alias),
      has_weights: isServed(model),
      engine:
        engine === undefined
          ? null
          : { state: engine.state, load_error: engine.load_error ?? null, load: models.schedulerLoad(id) },
      drift_index: drifts.get(id) ?? null,
      reload: reloads.statusOf(operator, id),
    });
  });
}
