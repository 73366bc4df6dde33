import type { SentInvitation } from '../../accounts/invitations.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Identifiers } from '../../contract/identifiers.ts';
import type { BatchServices } from '../../http/batch-stream.ts';
import type { BodyLimits } from '../../http/body-bytes.ts';
import type { Payments } from '../../http/webhook-routes.ts';
import type { Audits } from '../../maintenance/audits.ts';
import type { RecentActivity } from '../../observability/recent-activity.ts';
import type { Problems, RecentProblems } from '../../problems/problems.ts';
import type { AnswerCounts } from '../../served-models/answer-counts.ts';
import type { Reloads } from '../../served-models/console-reloads.ts';
import type { Models } from '../../served-models/models.ts';
import type { MovementReader } from '../../store/movement-reader.ts';
import type { Store } from '../../store/store.ts';
import type { UsageReader } from '../../store/usage-reader.ts';
import type { Clock } from '../../time/clock.ts';
import type { PasswordSignIn } from '../people/password-sign-in.ts';

/** The operators' access to the running service. */
export interface Operation {
  readonly activity: Pick<RecentActivity, 'now' | 'refusalsOf'>;
  readonly audits: Pick<Audits, 'status' | 'auditNow'>;
  readonly models: Pick<Models, 'states' | 'observed' | 'schedulerLoad' | 'lifecycle' | 'tuningEntries'>;
  readonly answer_counts: Pick<AnswerCounts, 'drifts'>;
  readonly reloads: Pick<Reloads, 'begin' | 'statusOf'>;
  /** Makes the models follow a change of the catalog at once. Never rejects. */
  readonly followCatalog: () => Promise<void>;
}

/** The parts that the console's API needs. */
export interface ConsoleServices {
  readonly sign_in: PasswordSignIn;
  readonly store: Store;
  /** Long reads of usage. */
  readonly reader: UsageReader & MovementReader;
  /** Returns true if an error means that the database is unreachable, so that a retry may succeed. */
  readonly isDatabaseAway: (error: unknown) => boolean;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems & RecentProblems;
  /** The means to buy credit; null where the operator gives it by hand. */
  readonly payments: Payments | null;
  /**
   * Mails the link of an invitation. A mail that cannot be sent is reported, and the invitation can be sent
   * again.
   */
  readonly mailInvitation: (invitation: SentInvitation, inviter_name: string) => void;
  /** Answers the requests of the playground and of batches. */
  readonly decisions: BatchServices & { readonly catalog: Pick<Catalog, 'listDecisionModelsOf'> };
  readonly body_limits: BodyLimits;
  readonly operation: Operation;
  /** The origin of the console, such as `https://tds.example.com`; null to trust the `Host` of requests. */
  readonly public_origin: string | null;
  /** True if the console is certainly reached by https. */
  readonly is_https: boolean;
}
