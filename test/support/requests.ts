import type { TestService } from './service.ts';

/** A request that is in order and small. */
export const SMALL_REQUEST = {
  model: 'decision-1',
  state: 'I was charged twice for order 8812. Please give the second payment back.',
  questions: { refund: { type: 'noul', instructions: 'Does the customer ask for money back?' } },
};

/** Posts a JSON body with a key. */
export function post(
  service: Pick<TestService, 'fetch'>,
  key: string,
  body: unknown,
  path = '/v1/decisions',
): Promise<Response> {
  return service.fetch(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}
