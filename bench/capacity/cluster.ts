import { quantile } from '../support/statistics.ts';
import { ASSUMED_MACHINE, COSTS, type Machine } from './costs.ts';
import { SimulatedDatabase } from './database.ts';
import { SimulatedNode } from './node.ts';
import { Random, Shares } from './random.ts';
import { VirtualTime } from './virtual-time.ts';
import { WindowRows } from './window-rows.ts';

/** A client has its answer, or a 503, by then (`DEADLINE_MS` of `db/postgres/ledger-batches.ts`). */
const DEADLINE_MS = 5_000;
/** How long the model takes. It is no bottleneck here: its nodes are counted apart. */
const MODEL_MS = 100;
/** The part of a run that is not measured, because queues are still growing. */
const WARM_UP = 1 / 4;

/** What requests a cluster gets. */
export interface ClusterLoad {
  readonly nodes: number;
  readonly organizations: number;
  /** The exponent of the shares of organizations (`Shares`). */
  readonly skew: number;
  readonly requests_per_s: number;
  /** Requests come for so long, in virtual time. */
  readonly seconds: number;
  /** To how many nodes a load balancer sends the requests of one organization; all by default. */
  readonly nodes_an_organization?: number;
  /** What the windows let in of an organization; all by default. */
  readonly requests_per_minute?: number;
  /** Only the windows are asked: neither keys nor the ledger. */
  readonly is_windows_only?: boolean;
  readonly machine?: Machine;
  readonly seed?: number;
}

/** A request that has ended, and how long each of its steps took. */
export interface EndedRequest {
  readonly organization: number;
  readonly arrived_ms: number;
  /** When the database let it in; null where it did not. */
  readonly admitted_at_ms: number | null;
  readonly admission_ms: number;
  readonly hold_ms: number;
  readonly charge_ms: number;
  readonly ended_ms: number;
}

/** What a run came to. */
export interface ClusterRun {
  readonly arrived: number;
  readonly requests: readonly EndedRequest[];
  readonly database: SimulatedDatabase;
  readonly measured_from_ms: number;
  readonly measured_to_ms: number;
  /** When the last request had ended. */
  readonly ended_ms: number;
  /** The share of the largest organization. */
  readonly largest_share: number;
}

/** Runs a cluster in virtual time, until every request has ended. Requests come independently of each other. */
export function simulateCluster(load: ClusterLoad): ClusterRun {
  return new Cluster(load).run();
}

class Cluster {
  readonly #load: ClusterLoad;
  readonly #random: Random;
  readonly #time = new VirtualTime();
  readonly #database: SimulatedDatabase;
  readonly #nodes: readonly SimulatedNode[];
  readonly #shares: Shares;
  readonly #nodes_an_organization: number;
  readonly #ended: EndedRequest[] = [];
  #arrived = 0;

  constructor(load: ClusterLoad) {
    this.#load = load;
    this.#random = new Random(load.seed ?? 1);
    this.#database = new SimulatedDatabase(this.#time, load.machine ?? ASSUMED_MACHINE);
    const rows = new WindowRows(load.requests_per_minute ?? null);
    const { nodes } = load;
    this.#nodes = Array.from({ length: nodes }, () => new SimulatedNode(this.#time, this.#database, rows));
    this.#shares = new Shares(load.organizations, load.skew, this.#random);
    this.#nodes_an_organization = Math.min(load.nodes_an_organization ?? nodes, nodes);
  }

  run(): ClusterRun {
    const measured_to_ms = 1_000 * this.#load.seconds;
    this.#arriveNext(measured_to_ms);
    this.#time.run();
    return {
      arrived: this.#arrived,
      requests: this.#ended,
      database: this.#database,
      measured_from_ms: WARM_UP * measured_to_ms,
      measured_to_ms,
      ended_ms: this.#time.now_ms,
      largest_share: this.#shares.of(1),
    };
  }

  #arriveNext(until_ms: number): void {
    const delay_ms = this.#random.exponential(1_000 / this.#load.requests_per_s);
    if (this.#time.now_ms + delay_ms >= until_ms) return;
    this.#time.after(delay_ms, () => {
      this.#arrived += 1;
      this.#arrive();
      this.#arriveNext(until_ms);
    });
  }

  #arrive(): void {
    const organization = this.#shares.draw(this.#random);
    const node = this.#nodeOf(organization);
    const arrived_ms = this.#time.now_ms;
    const ask = () => this.#ask(node, organization, arrived_ms);
    if (this.#load.is_windows_only === true) ask();
    // Where many nodes share the requests, nearly every key has to be looked up anew.
    else this.#database.read(COSTS.key_lookup_ms + COSTS.catalog_read_ms, ask);
  }

  #ask(node: SimulatedNode, organization: number, arrived_ms: number): void {
    const asked_ms = this.#time.now_ms;
    node.admit(organization, (admitted_at_ms) => {
      const admission_ms = this.#time.now_ms - asked_ms;
      const end = (hold_ms: number, charge_ms: number) => {
        const ended_ms = this.#time.now_ms;
        const of = { organization, arrived_ms, admitted_at_ms };
        this.#ended.push({ ...of, admission_ms, hold_ms, charge_ms, ended_ms });
      };
      if (admitted_at_ms === null) end(0, 0);
      else if (this.#load.is_windows_only === true) this.#runModel(node, organization, () => end(0, 0));
      else this.#pay(node, organization, end);
    });
  }

  #pay(node: SimulatedNode, organization: number, end: (hold_ms: number, charge_ms: number) => void): void {
    const admitted_ms = this.#time.now_ms;
    node.write(organization, () => {
      const hold_ms = this.#time.now_ms - admitted_ms;
      this.#runModel(node, organization, () => {
        const answered_ms = this.#time.now_ms;
        node.write(organization, () => end(hold_ms, this.#time.now_ms - answered_ms));
      });
    });
  }

  #runModel(node: SimulatedNode, organization: number, answered: () => void): void {
    this.#time.after(MODEL_MS, () => {
      node.settle(organization);
      answered();
    });
  }

  #nodeOf(organization: number): SimulatedNode {
    const count = this.#nodes_an_organization;
    const node = this.#nodes[(organization * count + this.#random.below(count)) % this.#nodes.length];
    if (node === undefined) throw new RangeError('a cluster without nodes');
    return node;
  }
}

/** The numbers of a run that its tables have. Delays are of requests that arrived while it was measured. */
export function summaryOf(run: ClusterRun) {
  const { requests, database, measured_from_ms, measured_to_ms, ended_ms } = run;
  const isMeasured = (at_ms: number) => at_ms >= measured_from_ms && at_ms < measured_to_ms;
  const measured = requests.filter(({ arrived_ms }) => isMeasured(arrived_ms));
  const admitted = measured.filter(isAdmitted);
  const answered = requests.filter((request) => isAdmitted(request) && isMeasured(request.ended_ms));
  const writes = 2 * requests.filter(isAdmitted).length;
  const late = admitted.filter(({ hold_ms, charge_ms }) => Math.max(hold_ms, charge_ms) > DEADLINE_MS);
  return {
    answered_per_s: (1_000 * answered.length) / (measured_to_ms - measured_from_ms),
    refused_share: (measured.length - admitted.length) / Math.max(1, measured.length),
    late_share: late.length / Math.max(1, admitted.length),
    admission_ms: spread(admitted.map(({ admission_ms }) => admission_ms)),
    hold_ms: spread(admitted.map(({ hold_ms }) => hold_ms)),
    charge_ms: spread(admitted.map(({ charge_ms }) => charge_ms)),
    lock_wait_ms: spread(database.lock_waits_ms),
    window_wait_ms: spread(database.window_waits_ms),
    writes_a_commit: database.transactions === 0 ? 0 : writes / database.transactions,
    commits_per_s: (1_000 * database.transactions) / ended_ms,
    busy_cores: database.cores.busy_ms / ended_ms,
    flushes_per_s: (1_000 * database.log.flushes) / ended_ms,
    connections_in_use: database.connected_ms / ended_ms,
  };
}

function isAdmitted({ admitted_at_ms }: EndedRequest): boolean {
  return admitted_at_ms !== null;
}

function spread(values: readonly number[]) {
  return { p50: quantile(values, 0.5), p99: quantile(values, 0.99) };
}
