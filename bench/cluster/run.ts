import { type BooksResult, checkBooks } from './books.ts';
import { Clients } from './clients.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import type { Fault, FaultResult } from './faults.ts';
import { type FaultTimes, type Phase, phasesOf } from './measured.ts';

/** The longest time from a fault's repair to the clients' first answer. */
const RECOVERY_MS = 30_000;
const POLL_MS = 50;
/** The time from a fault's beginning in which clients never rest. */
const FULL_LOAD_MS = 3_000;

/** Options of a run. */
export interface RunOptions extends ClusterOptions {
  readonly clients: number;
  readonly faults: readonly Fault[];
  /** The time measured before and after each fault. */
  readonly quiet_ms: number;
  /** The pause of a client after a 200 while the run only waits: late in a fault, and for its later check. */
  readonly rest_ms?: number;
  /** Called with each line of progress. */
  readonly onProgress: (line: string) => void;
}

export interface RunResult extends BooksResult {
  readonly phases: readonly Phase[];
  readonly notes: readonly string[];
}

/** Runs the faults one after the other under load, then stops the nodes and checks the books. */
export async function runCluster(options: RunOptions): Promise<RunResult> {
  const { faults, quiet_ms, rest_ms = 0, onProgress } = options;
  const cluster = await Cluster.start(options);
  try {
    const own_refusals = cluster.organizations.map(({ refusal }) => refusal);
    const keys = cluster.organizations.map(({ key }) => key);
    const clients = new Clients(cluster.balancer.address, keys, options.clients);
    const times: FaultTimes[] = [];
    const notes: string[] = [];
    const complaints: string[] = [];
    const note = (name: string, result: FaultResult) => {
      notes.push(...result.notes.map((text) => `${name}: ${text}`));
      complaints.push(...result.complaints.map((text) => `${name}: ${text}`));
    };
    // Connections are opened, and code is compiled, in the first seconds.
    await Bun.sleep(quiet_ms);
    for (const { name, prepare, run, loses_windows = false } of faults) {
      await prepare?.(cluster);
      const before_ms = performance.now();
      await Bun.sleep(quiet_ms);
      onProgress(name);
      const from_ms = performance.now();
      const result = await resting(run(cluster), clients, rest_ms, FULL_LOAD_MS);
      const to_ms = performance.now();
      if (!(await isAnswered(clients, to_ms))) complaints.push(`${name}: nobody was answered afterwards`);
      await Bun.sleep(quiet_ms);
      times.push({ name, before_ms, from_ms, to_ms, after_ms: performance.now(), loses_windows });
      note(name, result);
      if (result.later !== undefined) note(name, await resting(result.later, clients, rest_ms, 0));
    }
    await clients.stop();
    onProgress('stopping the nodes');
    const codes = await cluster.stopNodes();
    if (codes.some((code) => code !== 0)) complaints.push(`nodes ended with ${codes.join(' and ')}`);
    const books = await checkBooks(cluster, clients.seen, times);
    return {
      totals: books.totals,
      complaints: [...complaints, ...books.complaints],
      phases: times.flatMap((one) => phasesOf(clients.seen, one, own_refusals)),
      notes,
    };
  } finally {
    await cluster.remove();
  }
}

/** Resolves as the work does. Clients rest from that time on, until it ends. */
async function resting<T>(work: Promise<T>, clients: Clients, rest_ms: number, after_ms: number): Promise<T> {
  const timer = setTimeout(() => {
    clients.rest_ms = rest_ms;
  }, after_ms);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    clients.rest_ms = 0;
  }
}

/** Resolves with true after an answer to a request that began after that time. */
async function isAnswered(clients: Clients, from_ms: number): Promise<boolean> {
  for (
    const late_ms = performance.now() + RECOVERY_MS;
    performance.now() < late_ms;
    await Bun.sleep(POLL_MS)
  ) {
    if (clients.seen.some((one) => one.outcome === '200' && one.from_ms >= from_ms)) return true;
  }
  return false;
}
