import type { Actor } from '../../../accounts/actor.ts';
import { Refusal } from '../../../errors.ts';
import { refusedByPort } from '../refusals.ts';
import type { ConsoleServices } from '../services.ts';
import { signedIn } from '../signed-in.ts';

/**
 * For routes of the operator: the actor who may do everything. To everybody else who is signed in they are as paths that
 * do not exist, whatever was sent.
 */
export function operatorOnly(services: Pick<ConsoleServices, 'sign_in'>) {
  return signedIn(services).derive({ as: 'scoped' }, ({ session }) => {
    if (!session.is_operator) throw refusedByPort(new Refusal('not_found'));
    const operator: Actor = { kind: 'operator', user_id: session.user_id };
    return { operator };
  });
}
