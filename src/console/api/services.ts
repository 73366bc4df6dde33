import type { SentInvitation } from '../../accounts/invitations.ts';
import type { Clock } from '../../clock.ts';
import type { BodyLimits } from '../../http/body-bytes.ts';
import type { DecisionRouteServices } from '../../http/decision-routes.ts';
import type { Payments } from '../../http/webhook-routes.ts';
import type { Identifiers } from '../../identifiers.ts';
import type { MovementReader } from '../../ledger/movement-reader.ts';
import type { Models } from '../../models/models.ts';
import type { Reloads } from '../../models/reloads.ts';
import type { Audits } from '../../ops/audits.ts';
import type { RecentActivity } from '../../ops/recent-activity.ts';
import type { Problems, RecentProblems } from '../../problems/problems.ts';
import type { Store } from '../../store.ts';
import type { UsageReader } from '../../usage/usage-reader.ts';
import type { SignIn } from '../people/sign-in.ts';

/** What operators see and do of the running service. */
export interface Operation {
  readonly activity: Pick<RecentActivity, 'now'>;
  readonly audits: Pick<Audits, 'status' | 'auditNow'>;
  readonly models: Pick<Models, 'states' | 'turnsLoad'>;
  readonly reloads: Pick<Reloads, 'begin' | 'statusOf'>;
  /** Lets the models follow a change of the catalog at once. Never rejects. */
  readonly followCatalog: () => Promise<void>;
}

/** Everything that the console's API needs. */
export interface ConsoleServices {
  readonly sign_in: SignIn;
  readonly store: Store;
  /** Reads of usage that may take long. */
  readonly reader: UsageReader & MovementReader;
  /** Whether an error says that the database cannot be reached, so that the same may succeed in a moment. */
  readonly isDatabaseAway: (error: unknown) => boolean;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems & RecentProblems;
  /** How credit is bought; null where it is only given by hand. */
  readonly payments: Payments | null;
  /** Mails the link of an invitation; a mail that cannot be sent is reported, and the invitation can be sent again. */
  readonly mailInvitation: (invitation: SentInvitation, inviter_name: string) => void;
  /** Answers the playground's requests. */
  readonly decisions: DecisionRouteServices;
  readonly body_limits: BodyLimits;
  readonly operation: Operation;
  /** The origin under which people open the console, such as `https://tds.example.com`; null: the one that they name. */
  readonly public_origin: string | null;
  /** Whether people reach the console by https for certain. */
  readonly is_https: boolean;
}
