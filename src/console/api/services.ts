import type { KeyDirectory } from '../../accounts/key-directory.ts';
import type { Clock } from '../../clock.ts';
import type { BodyLimits } from '../../http/body-bytes.ts';
import type { Identifiers } from '../../identifiers.ts';
import type { Problems } from '../../problems/problems.ts';
import type { Store } from '../../store.ts';

/** Who is signed in, as every route of the console needs it. */
export interface SignedIn {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  readonly is_operator: boolean;
  readonly session_id: string;
  /** What a change must carry in `x-csrf-token`. */
  readonly csrf_token: string;
  readonly expires_at_ms: number;
}

/** Finds out who is signed in. */
export interface Sessions {
  /** The session of a request's cookies; null when there is none, or it ended. */
  sessionOf(headers: Headers): Promise<SignedIn | null>;
}

/** Everything that the console's API needs. */
export interface ConsoleServices {
  readonly sessions: Sessions;
  readonly store: Store;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  readonly keys: KeyDirectory;
  readonly body_limits: BodyLimits;
  /** The origin under which people open the console, such as `https://tds.example.com`; null: the one that they name. */
  readonly public_origin: string | null;
}
