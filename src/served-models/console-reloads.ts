import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { errorMessage } from '../errors/error-message.ts';
import type { ReloadRequest } from './reload.ts';

/** The status of the last reload of a model. */
export interface ReloadStatus {
  readonly state: 'running' | 'done' | 'failed';
  readonly started_at_ms: number;
  /** Null while it runs. */
  readonly ended_at_ms: number | null;
  /** The reason why the old weights stayed; null unless it failed. */
  readonly error: string | null;
}

/** Reloads started from the console, which take longer than a response may. */
export class Reloads {
  readonly #last = new Map<string, ReloadStatus>();

  constructor(
    private readonly context: Pick<AccountContext, 'store' | 'clock'>,
    /** Rejects with `ReloadRefused`, whose message is for the operator. */
    private readonly reload: (request: ReloadRequest) => Promise<void>,
  ) {}

  /**
   * Starts reloading a model's weights from the same place (operator only). A running reload is not started
   * again. Resolves at its start; `statusOf` has its result. Rejects with `permission_denied`, `not_found`.
   */
  async begin(actor: Actor, id: string): Promise<void> {
    requireOperator(actor);
    const { store, clock } = this.context;
    const before = this.#last.get(id);
    if (before?.state === 'running') return;
    const started_at_ms = clock.now_ms();
    this.#last.set(id, { state: 'running', started_at_ms, ended_at_ms: null, error: null });
    try {
      await store.transaction(async (records) => {
        if ((await records.catalog.findModel(id)) === undefined) {
          throw new AccountError('not_found', 'There is no such model.');
        }
        const act = { action: 'model.reload', organization_id: null, object_id: id } as const;
        await recordAct(records, { clock }, actor, act);
      });
    } catch (error) {
      if (before === undefined) this.#last.delete(id);
      else this.#last.set(id, before);
      throw error;
    }
    const end = (state: 'done' | 'failed', error: string | null) =>
      this.#last.set(id, { state, started_at_ms, ended_at_ms: clock.now_ms(), error });
    this.reload({ actor, id, weights: null }).then(
      () => end('done', null),
      (error: unknown) => end('failed', errorMessage(error)),
    );
  }

  /** Returns the last reload of a model that was started here; null for none. Throws `permission_denied`. */
  statusOf(actor: Actor, id: string): ReloadStatus | null {
    requireOperator(actor);
    return this.#last.get(id) ?? null;
  }
}
