import type { SimulatedDatabase } from './database.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { WindowRows } from './window-rows.ts';

/** As `db/postgres/ledger-batches.ts` and `db/postgres/rate-windows.ts` have them. */
const BATCH_MAX = 256;
const GROUP_MAX = 512;

interface Write {
  readonly organization: number;
  readonly written: () => void;
}

interface Question {
  readonly organization: number;
  readonly answered: Answered;
}

/** Is told when the database let a request in, and null for a request that it did not. */
type Answered = (admitted_at_ms: number | null) => void;

/**
 * A node: one transaction of the ledger at a time and one statement of the rate windows, each with what was asked for
 * during the one before.
 */
export class SimulatedNode {
  #writes: Write[] = [];
  #is_writing = false;
  #questions: Question[] = [];
  #settlements: number[] = [];
  #is_asking = false;
  /** Organizations without a request left, and until when. */
  readonly #exhausted = new Map<number, number>();

  constructor(
    private readonly time: VirtualTime,
    private readonly database: SimulatedDatabase,
    private readonly windows: WindowRows,
  ) {}

  /** A hold or a charge of the organization. */
  write(organization: number, written: () => void): void {
    this.#writes.push({ organization, written });
    if (this.#is_writing) return;
    this.#is_writing = true;
    this.#nextTurn(() => this.#writeAll());
  }

  /** Asks the windows for a request of the organization. */
  admit(organization: number, answered: Answered): void {
    const exhausted_ms = this.#exhausted.get(organization) ?? 0;
    if (exhausted_ms > this.time.now_ms) {
      answered(null);
      return;
    }
    this.#questions.push({ organization, answered });
    this.#ask();
  }

  /** Tells the windows what a request was billed; nobody waits for it. */
  settle(organization: number): void {
    this.#settlements.push(organization);
    this.#ask();
  }

  #writeAll(): void {
    const batch = this.#writes.splice(0, BATCH_MAX);
    this.#is_writing = batch.length > 0;
    if (!this.#is_writing) return;
    const organizations = sorted(batch.map(({ organization }) => organization));
    this.database.writeLedger(organizations, batch.length, () => {
      for (const { written } of batch) written();
      this.#nextTurn(() => this.#writeAll());
    });
  }

  #ask(): void {
    if (this.#is_asking) return;
    this.#is_asking = true;
    this.#nextTurn(() => this.#askAll());
  }

  #askAll(): void {
    const questions = this.#questions.splice(0, GROUP_MAX);
    const settlements = this.#settlements.splice(0);
    const requests = questions.length + settlements.length;
    this.#is_asking = requests > 0;
    if (!this.#is_asking) return;
    const asked = sorted(questions.map(({ organization }) => organization));
    const organizations = sorted([...settlements, ...asked]);
    let decided_ms = 0;
    let leave_ms: number[] = [];
    const decide = () => {
      decided_ms = this.time.now_ms;
      leave_ms = questions.map(({ organization }) => this.windows.admit(organization, decided_ms));
    };
    this.database.askWindows({ organizations, requests, entries: asked.length }, decide, () => {
      for (const [index, { organization, answered }] of questions.entries()) {
        const until_ms = leave_ms[index] ?? 0;
        if (until_ms > 0) this.#exhausted.set(organization, decided_ms + until_ms);
        answered(until_ms > 0 ? null : decided_ms);
      }
      this.#nextTurn(() => this.#askAll());
    });
  }

  /** Whoever was just answered may ask for the next: that goes along. */
  #nextTurn(happen: () => void): void {
    this.time.after(0, happen);
  }
}

function sorted(organizations: readonly number[]): number[] {
  return [...new Set(organizations)].sort((left, right) => left - right);
}
