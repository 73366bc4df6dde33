import { COSTS, LEDGER_PARTS, type Machine, valueAt, WINDOWS_BEFORE_LOCKS } from './costs.ts';
import { Cores, GroupedFlush, Places, RowLocks } from './resources.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What a node asks of the windows in one statement. */
export interface WindowsGroup {
  readonly organizations: readonly number[];
  /** Admissions and settlements. */
  readonly requests: number;
  /** Organizations with admissions. */
  readonly entries: number;
}

/**
 * A PostgreSQL server as nodes see it: what they send takes time on the way, at its cores, for locks of organizations
 * and at the disk. Organizations are sorted, each once.
 */
export class SimulatedDatabase {
  readonly cores: Cores;
  readonly log: GroupedFlush;
  readonly #standby: GroupedFlush | null;
  readonly #connections: Places;
  readonly #organizations = new RowLocks();
  readonly #windows = new RowLocks();
  transactions = 0;
  /** How long each transaction of the ledger, and each statement of the windows, waited for its locks. */
  readonly lock_waits_ms: number[] = [];
  readonly window_waits_ms: number[] = [];
  /** Summed over transactions of the ledger, from their first message to their commit. */
  connected_ms = 0;

  constructor(
    private readonly time: VirtualTime,
    private readonly machine: Machine,
  ) {
    this.cores = new Cores(time, machine.cores);
    this.log = new GroupedFlush(time, machine.flush_ms);
    this.#standby = machine.standby === null ? null : new GroupedFlush(time, machine.standby.flush_ms);
    this.#connections = new Places(machine.pooled_connections ?? Number.POSITIVE_INFINITY);
  }

  /** A read that waits for nobody. */
  read(duration_ms: number, answered: () => void): void {
    this.#travel(() => this.cores.run(duration_ms, () => this.#travel(answered)));
  }

  /**
   * Holds and charges in one transaction: lock and read, an answer, writes and a durable commit. The locks are kept
   * until the disk and the standby have it, as PostgreSQL keeps them.
   */
  writeLedger(organizations: readonly number[], writes: number, committed: () => void): void {
    const { time, cores } = this;
    const own_ms = valueAt(COSTS.ledger_writes_ms, writes);
    const server_ms = own_ms + organizations.length * COSTS.ledger_organization_ms;
    const node_ms = valueAt(COSTS.node_writes_ms, writes);
    let began_ms = 0;
    let asked_ms = 0;
    const begin = () => {
      began_ms = time.now_ms;
      this.#travel(() => cores.run(LEDGER_PARTS.before_locks * server_ms, lock));
    };
    const lock = () => {
      asked_ms = time.now_ms;
      this.#organizations.takeAll(organizations, read);
    };
    const read = () => {
      this.lock_waits_ms.push(time.now_ms - asked_ms);
      cores.run(LEDGER_PARTS.reads * server_ms, () => this.#travel(decide));
    };
    const decide = () => this.#computeAtNode(node_ms, () => this.#travel(write));
    const write = () => cores.run(LEDGER_PARTS.writes * server_ms, () => this.log.flush(replicate));
    const replicate = () => this.#replicate(end);
    const end = () => {
      this.transactions += 1;
      this.connected_ms += time.now_ms - began_ms;
      this.#organizations.giveBackAll(organizations);
      this.#connections.giveBack();
      this.#travel(committed);
    };
    this.#connections.take(begin);
  }

  /**
   * Admissions and settlements in one statement, decided under its locks; its commit waits for no disk. Every statement
   * takes out as many entries as it makes, on average.
   */
  askWindows(group: WindowsGroup, decide: () => void, answered: () => void): void {
    const { time, cores } = this;
    const { organizations, requests, entries } = group;
    const server_ms =
      COSTS.windows_statement_ms +
      organizations.length * COSTS.windows_organization_ms +
      requests * COSTS.windows_request_ms +
      entries * COSTS.windows_expiry_ms;
    let asked_ms = 0;
    const begin = () => this.#travel(() => cores.run(WINDOWS_BEFORE_LOCKS * server_ms, lock));
    const lock = () => {
      asked_ms = time.now_ms;
      this.#windows.takeAll(organizations, locked);
    };
    const locked = () => {
      this.window_waits_ms.push(time.now_ms - asked_ms);
      decide();
      cores.run((1 - WINDOWS_BEFORE_LOCKS) * server_ms, end);
    };
    const end = () => {
      this.#windows.giveBackAll(organizations);
      this.#connections.giveBack();
      this.#travel(answered);
    };
    this.#connections.take(begin);
  }

  #travel(arrived: () => void): void {
    const delay_ms = this.machine.round_trip_ms / 2;
    if (delay_ms === 0) arrived();
    else this.time.after(delay_ms, arrived);
  }

  #computeAtNode(duration_ms: number, done: () => void): void {
    if (this.machine.is_shared_with_nodes) this.cores.run(duration_ms, done);
    else this.time.after(duration_ms, done);
  }

  #replicate(done: () => void): void {
    const { standby } = this.machine;
    const flush = this.#standby;
    if (standby === null || flush === null) {
      done();
      return;
    }
    const way_ms = standby.round_trip_ms / 2;
    this.time.after(way_ms, () => flush.flush(() => this.time.after(way_ms, done)));
  }
}
