import { pausePostgres } from '../../test/support/paused-postgres.ts';
import type { Cluster, ClusterNode } from './cluster.ts';

/** A dead node's holds are released by the others within this time. */
const RELEASED_MS = 30_000;
const POLL_MS = 250;
/** Before a node that was killed is started again. */
const DOWN_MS = 2_000;

/** Something that goes wrong in a cluster, and is mended. */
export interface Fault {
  readonly name: string;
  /** What it needs of the cluster, before anything is measured. */
  readonly prepare?: (cluster: Cluster) => Promise<void>;
  /** Resolves when it is mended, with what is to be seen later, and what does not hold. */
  readonly run: (cluster: Cluster) => Promise<FaultResult>;
  /** Whether the newest requests may be missing in the rate windows afterwards, which are not flushed at once. */
  readonly loses_windows?: true;
}

export interface FaultResult {
  readonly notes: readonly string[];
  readonly complaints: readonly string[];
  /** What is looked at while the load goes on. */
  readonly later?: Promise<FaultResult>;
}

function nodeOf(cluster: Cluster, index: number): ClusterNode {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

/** `kill -9` of a node, and its start again. */
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

/** A node that is paused for so long and goes on: it lives, so that nobody may release its holds. */
export function pause(index: number, seconds: number): Fault {
  return {
    name: `SIGSTOP of a node for ${seconds} s`,
    async run(cluster) {
      const node = nodeOf(cluster, index);
      node.running.signal('SIGSTOP');
      const ends_ms = performance.now() + seconds * 1_000;
      // What it had sent before is done by then.
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

/** Nothing passes between a node and the database, and neither is told. */
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

/** The database's machine stands still for so long: connections stay open, and nothing is answered. */
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
 * The standby hangs for so long, so that no commit may be acknowledged. Then the primary is killed, and the standby
 * promoted: what was acknowledged meanwhile would be lost.
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
