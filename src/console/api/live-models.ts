import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { answerOf, Micros } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

const LiveModel = answerOf({
  id: Type.String(),
  context_tokens: Type.Integer({
    description: 'How much a request may be; a longer record loses its middle.',
  }),
  input_price_micros_per_million_tokens: Micros,
});

/** Returns the route of the open decision models, by id, without those that only one organization may ask. */
export function liveModelRoutes(services: ConsoleServices) {
  const { catalog } = services.decisions;
  return new Elysia({ prefix: '/models' }).use(signedIn(services)).get(
    '/',
    async () => {
      const models = await catalog.listCommonModels();
      return {
        items: models.map(({ id, context_tokens, input_price_micros_per_million_tokens }) => ({
          id,
          context_tokens,
          input_price_micros_per_million_tokens,
        })),
      };
    },
    { response: answerOf({ items: Type.Array(LiveModel) }) },
  );
}
