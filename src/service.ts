import type { Db } from '../db/connection.ts';
import { GroupCommit } from '../db/group-commit.ts';
import type { DecisionEngine } from '../native/engine.ts';
import { ModelLifecycle } from '../native/lifecycle.ts';
import { KeyDirectory } from './accounts/key-directory.ts';
import { type AppServices, createApp } from './app.ts';
import { Catalog, seedCatalog } from './catalog/catalog.ts';
import type { Clock } from './clock.ts';
import type { Identifiers } from './identifiers.ts';
import { Ledger } from './ledger/ledger.ts';
import { Settlement } from './ledger/settlement.ts';
import { ModelTurns } from './limits/model-turns.ts';
import { RateLimiter, WINDOW_MS } from './limits/rate-limiter.ts';
import { Turns } from './limits/turns.ts';
import type { Log } from './ops/log.ts';
import { startMaintenance } from './ops/maintenance.ts';
import { creditContext } from './payments/credit.ts';
import type { PaymentProvider } from './payments/provider.ts';
import { UsageLog } from './usage/usage.ts';

/** Requests of an organization that may be planned at once: enough to keep the tokenizer's threads busy. */
const ADMISSIONS_AT_ONCE = 4;

/** Requests at the model, and milliseconds that one may take there, unless configured. */
const QUEUE_LIMIT = 512;
const EVALUATION_MS = 300_000;
/** A request waits no longer for its turn than clients are advised to (spec, "Performance and cold start"). */
const WAITING_MS = 120_000;

/** What a service is made of that is not its own: its database, its model, and its sources of time and ids. */
export interface ServiceParts {
  readonly db: Db;
  readonly openEngine: () => Promise<DecisionEngine>;
  /** Milliseconds without a request after which the model is unloaded; 0 keeps it. */
  readonly idle_unload_ms: number;
  /** Requests that may be at the model, waiting or running. */
  readonly queue_limit?: number;
  /** Milliseconds from a request's first turn at the model to its answer. */
  readonly evaluation_ms?: number;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly log: Log;
  /** Whose webhooks are taken; null where credit is only given by hand. */
  readonly payment_provider: PaymentProvider | null;
}

/** A service on its database, without a port. */
export interface Service {
  readonly services: AppServices & { readonly model: ModelLifecycle };
  /** Answers one HTTP request. */
  readonly handle: (request: Request) => Response | Promise<Response>;
  /** Writes what is waiting and unloads the model; the database stays open. Call it after the last request. */
  close(): Promise<void>;
}

/**
 * Ends what an earlier process left open, rebuilds the rate windows, and wires everything together. The model is not
 * loaded yet. Throws what SQLite throws.
 */
export function openService(parts: ServiceParts): Service {
  const { db } = parts;
  const { clock, identifiers, log } = parts;
  seedCatalog(db);
  const commits = new GroupCommit(db);
  const ledger = new Ledger(db);
  const settlement = new Settlement(ledger, commits, clock);
  const released = settlement.recoverAtStart();
  if (released > 0) log.warn('released the holds that the last run left open', { holds: released });
  const usage = new UsageLog(db);
  const limiter = restoredLimiter(usage, clock);
  const keys = new KeyDirectory(db, clock);
  const catalog = new Catalog(db);
  const model = new ModelLifecycle({
    open: parts.openEngine,
    idle_unload_ms: parts.idle_unload_ms,
    now_ms: () => clock.monotonic_ms(),
  });
  const payments =
    parts.payment_provider === null
      ? null
      : { context: creditContext(db, clock, identifiers), provider: parts.payment_provider };
  const services = {
    payments,
    clock,
    identifiers,
    log,
    keys,
    catalog,
    limiter,
    admissions: new Turns(ADMISSIONS_AT_ONCE),
    commits,
    ledger,
    settlement,
    usage,
    model,
    turns: new ModelTurns(parts.queue_limit ?? QUEUE_LIMIT, clock),
    model_time: { waiting_ms: WAITING_MS, evaluation_ms: parts.evaluation_ms ?? EVALUATION_MS },
  };
  const stopMaintenance = startMaintenance({ db, commits, keys, limiter, clock, log });
  const app = createApp(services);
  return {
    services,
    handle: (request) => app.handle(request),
    async close() {
      stopMaintenance();
      // First the model: what still waits for it is refused, and its holds are released before the settlement ends.
      await model.close();
      await keys.flushLastUsed(commits).catch(() => log.warn('last-used times of keys could not be written'));
      await settlement.close();
      log.flush();
    },
  };
}

/** The windows as the last minute's usage left them, so that a restart gives nobody a fresh allowance. */
function restoredLimiter(usage: UsageLog, clock: Clock): RateLimiter {
  const limiter = new RateLimiter();
  const monotonic_ms = clock.monotonic_ms();
  for (const used of usage.recent(clock.now_ms(), WINDOW_MS)) {
    limiter.restore(used.organization_id, used.age_ms, used.input_tokens, monotonic_ms);
  }
  return limiter;
}
