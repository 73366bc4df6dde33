import type { SentInvitation } from '../../accounts/invitations.ts';
import type { KeyDirectory } from '../../accounts/key-directory.ts';
import type { Clock } from '../../clock.ts';
import type { DecisionServices } from '../../decisions/ports.ts';
import type { BodyLimits } from '../../http/body-bytes.ts';
import type { Payments } from '../../http/webhook-routes.ts';
import type { Identifiers } from '../../identifiers.ts';
import type { MovementReader } from '../../ledger/movement-reader.ts';
import type { Problems } from '../../problems/problems.ts';
import type { Store } from '../../store.ts';
import type { UsageReader } from '../../usage/usage-reader.ts';
import type { SignIn } from '../people/sign-in.ts';

/** Everything that the console's API needs. */
export interface ConsoleServices {
  readonly sign_in: SignIn;
  readonly store: Store;
  /** Reads of usage that may take long. */
  readonly reader: UsageReader & MovementReader;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  /** How credit is bought; null where it is only given by hand. */
  readonly payments: Payments | null;
  readonly keys: KeyDirectory;
  /** Mails the link of an invitation; a mail that cannot be sent is reported, and the invitation can be sent again. */
  readonly mailInvitation: (invitation: SentInvitation, inviter_name: string) => void;
  /** Answers the playground's requests. */
  readonly decisions: DecisionServices;
  readonly body_limits: BodyLimits;
  /** The origin under which people open the console, such as `https://tds.example.com`; null: the one that they name. */
  readonly public_origin: string | null;
  /** Whether people reach the console by https for certain. */
  readonly is_https: boolean;
}
