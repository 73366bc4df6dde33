import { OPERATOR } from '../../src/access/actor.ts';
import { addOpenModel } from '../../src/catalog/changes.ts';
import type { TestService } from './service.ts';

/** Opens a model that servers of decisions at these addresses answer for. */
export async function addUpstreamModel(
  { accounts }: Pick<TestService, 'accounts'>,
  id: string,
  addresses: readonly string[],
): Promise<void> {
  await addOpenModel(
    accounts,
    OPERATOR,
    {
      id,
      kind: 'decision',
      description: 'Answers elsewhere.',
      context_tokens: 16_384,
      input_price_micros_per_million_tokens: 1_000_000,
    },
    {
      upstreams: {
        protocol: 'systemone',
        addresses,
        draining: [],
        model: null,
        token_file: null,
        ca_file: null,
      },
    },
  );
}
