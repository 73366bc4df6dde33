import { pausePostgres } from '../../test/support/paused-postgres.ts';
import type { Cluster, ClusterNode } from './cluster.ts';

/** The longest time until other nodes release a dead node's holds. */
const RELEASED_MS = 30_000;
const POLL_MS = 250;
/** The time before a killed node is started again. */
const DOWN_MS = 2_000;

/** A fault of a cluster, and its repair. */
export interface Fault {
  readonly name: string;
  /** Prepares the cluster, before the measurement. */
  readonly prepare?: (cluster: Cluster) => Promise<void>;
  /** Resolves after the repair, with later checks and complaints. */
  readonly run: (cluster: Cluster) => Promise<FaultResult>;
  /** True if the newest requests may be missing in the rate windows, which are not flushed at once. */
  readonly loses_windows?: true;
}

export interface FaultResult {
  readonly notes: readonly string[];
  readonly complaints: readonly string[];
  /** A check that runs while the load continues. */
  readonly later?: Promise<FaultResult>;
}

function nodeOf(cluster: Cluster, index: number): ClusterNode {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

/** Returns the fault: `kill -9` of a node, and its restart. */
export function kill(index: number): Fault {
  return {
    name: 'kill -9 of a node, started again',
    async run(cluster) {
      const node = nodeOf(cluster, index);
      const { id } = node;
      await node.running.kill();
      const from_ms = performance.now();
      const open = await cluster.openHolds(id);
      await Bun.sleep(DOWN_MS);
      await cluster.startNode(node);
      return {
        notes: [`${open} holds were open`],
        complaints: [],
        later: untilReleased(cluster, id, from_ms),
      };
    },
  };
}

async function untilReleased(cluster: Cluster, id: string, from_ms: number): Promise<FaultResult> {
  while ((await cluster.openHolds(id)) > 0 || (await cluster.isRegistered(id))) {
    if (performance.now() - from_ms > RELEASED_MS) {
      const complaint = `${await cluster.openHolds(id)} holds of a dead node were open after 30 s`;
      return { notes: [], complaints: [complaint] };
    }
    await Bun.sleep(POLL_MS);
  }
  const seconds = ((performance.now() - from_ms) / 1_000).toFixed(1);
  return { notes: [`released after ${seconds} s`], complaints: [] };
}

/** Returns the fault: a node is paused and resumed. It lives, so that nobody may release its holds. */
export function pause(index: number, seconds: number): Fault {
  return {
    name: `SIGSTOP of a node for ${seconds} s`,
    async run(cluster) {
      const node = nodeOf(cluster, index);
      node.running.signal('SIGSTOP');
      const ends_ms = performance.now() + seconds * 1_000;
      // Its earlier statements have ended by then.
      await Bun.sleep(2_000);
      const first = await cluster.openHolds(node.id);
      await Bun.sleep(ends_ms - performance.now());
      const last = await cluster.openHolds(node.id);
      const is_registered = await cluster.isRegistered(node.id);
      node.running.signal('SIGCONT');
      const complaints = [
        ...(last === first ? [] : [`a paused node had ${first} open holds, and then ${last}`]),
        ...(is_registered ? [] : ['a paused node was taken for dead']),
      ];
      return { notes: [`its ${first} open holds stayed`], complaints };
    },
  };
}

/** The primary crashes and starts again. */
export const RESTART: Fault = {
  name: 'primary crashes and starts again',
  loses_windows: true,
  async run({ primary }) {
    await primary.stop('immediate');
    await primary.start();
    return { notes: [], complaints: [] };
  },
};

/** Returns the fault: the network between a node and the database is cut silently. */
export function cut(index: number, seconds: number): Fault {
  return {
    name: `cut between a node and the database for ${seconds} s`,
    async run(cluster) {
      const { id, database } = nodeOf(cluster, index);
      const open = await cluster.openHolds(id);
      database.cut();
      await Bun.sleep(seconds * 1_000);
      database.restore();
      return { notes: [`${open} holds were open`], complaints: [] };
    },
  };
}

/** Returns the fault: the database's machine stops for a time. Connections stay open without answers. */
export function hang(seconds: number): Fault {
  return {
    name: `primary hangs for ${seconds} s`,
    async run({ primary }) {
      const goOn = pausePostgres(primary);
      await Bun.sleep(seconds * 1_000);
      goOn();
      return { notes: [], complaints: [] };
    },
  };
}

/** The primary is killed, and the standby promoted. */
export const FAILOVER: Fault = {
  name: 'primary killed, standby promoted',
  loses_windows: true,
  prepare: ensureStandby,
  async run(cluster) {
    await cluster.primary.stop('immediate');
    await cluster.failOver();
    return { notes: [], complaints: [] };
  },
};

/**
 * Returns the fault: the standby hangs, so that no commit may be acknowledged. Then the primary is killed, and the
 * standby promoted, which would lose acknowledged commits.
 */
export function failOverBehind(seconds: number): Fault {
  return {
    name: `standby hangs for ${seconds} s; then primary killed, standby promoted`,
    loses_windows: true,
    prepare: ensureStandby,
    async run(cluster) {
      const goOn = pausePostgres(cluster.standby);
      await Bun.sleep(seconds * 1_000);
      await cluster.primary.stop('immediate');
      goOn();
      await cluster.failOver();
      return { notes: [], complaints: [] };
    },
  };
}

async function ensureStandby(cluster: Cluster): Promise<void> {
  if (!cluster.hasStandby) await cluster.addStandby();
}
