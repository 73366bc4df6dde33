import { inBackground, type Problems } from '../problems/problems.ts';
import type { DueAlertMail } from '../store/alert-records.ts';
import type { Store } from '../store/store.ts';
import { DAY_MS, MINUTE_MS } from '../time/clock.ts';
import type { LimitRefusals } from './limit-refusals.ts';
import { watchAlerts } from './watch.ts';

/** The delay of a mail's next try. It is longer than a try, so that no two services send one at the same time. */
const RETRY_MS = 10 * MINUTE_MS;
/** A mail that could not be sent for a day is old news, and the console shows the alert. */
const MAIL_AGE_MAX_MS = DAY_MS;
const MAILS_OF_A_RUN = 100;
/** One failure may be an address that the server refuses; another means that the server is down. */
const FAILURES_OF_A_RUN = 2;

interface AlertRunParts {
  readonly store: Store;
  /** The time that all services on the database share. By their own clocks they would end each other's alerts. */
  readonly now_ms: () => Promise<number>;
  readonly problems: Problems;
  readonly limit_refusals: LimitRefusals;
  /** Sends one mail; null where no mail server is set. */
  readonly mail: ((mail: DueAlertMail) => Promise<void>) | null;
}

/** Finds what members are to be alerted to, and mails it. */
export class AlertRuns {
  #running: Promise<void> | null = null;

  constructor(private readonly parts: AlertRunParts) {}

  /** Runs once, or waits for the run under way. Never rejects: a failure is reported, and the next run tries again. */
  async run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Resolves when no run is under way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { problems } = this.parts;
    try {
      await watchAlerts(this.parts);
    } catch (error) {
      problems.report(inBackground('alerts', error));
    }
    try {
      await this.#mailDue();
    } catch (error) {
      this.#reportMail(error);
    }
  }

  /**
   * Sends the mails that are due, each once. A mail whose try was cut off is sent again after a while, with the same id,
   * because it may not have reached the server.
   */
  async #mailDue(): Promise<void> {
    const { store, mail: send } = this.parts;
    if (send === null) return;
    const { alerts } = store;
    const now_ms = await this.parts.now_ms();
    let failures = 0;
    for (const mail of await alerts.dueMails(now_ms, now_ms - MAIL_AGE_MAX_MS, MAILS_OF_A_RUN)) {
      const at_ms = await this.parts.now_ms();
      if (!(await alerts.claimMail(mail, at_ms, at_ms + RETRY_MS))) continue;
      try {
        await send(mail);
      } catch (error) {
        this.#reportMail(error);
        failures += 1;
        if (failures === FAILURES_OF_A_RUN) return;
        continue;
      }
      await alerts.noteMailed(mail);
    }
  }

  #reportMail(error: unknown): void {
    this.parts.problems.report(inBackground('mail', error));
  }
}
