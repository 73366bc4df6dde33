import type { Actor } from '../../../access/actor.ts';
import { Refusal } from '../../../errors/errors.ts';
import { refusedByPort } from '../refusals.ts';
import type { ConsoleServices } from '../services.ts';
import { signedIn } from '../signed-in.ts';

/**
 * Provides the operator as the actor of its routes. For all other users, the paths do not exist, whatever
 * they send.
 */
export function operatorOnly(services: Pick<ConsoleServices, 'sign_in'>) {
  return signedIn(services).derive({ as: 'scoped' }, ({ session }) => {
    if (!session.is_operator) throw refusedByPort(new Refusal('not_found'));
    const operator: Actor = { kind: 'operator', user_id: session.user_id };
    return { operator };
  });
}
