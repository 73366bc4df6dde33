import { quantile } from '../support/statistics.ts';
import { MEASURED_MACHINE } from './costs.ts';
import { SimulatedDatabase } from './database.ts';
import { SimulatedNode } from './node.ts';
import { VirtualTime } from './virtual-time.ts';
import { WindowRows } from './window-rows.ts';

/** A measurement of `bench/ledger.ts --postgres`: callers that ask again as soon as they have an answer. */
export interface Callers {
  readonly nodes: number;
  /** Of all nodes together. */
  readonly callers: number;
  readonly organizations: number;
}

/** In virtual time. */
const SECONDS = 4;

/** Pairs of hold and charge a second on the machine of the measurements, and the median time of a hold. */
export function simulateCallers({ nodes: node_count, callers, organizations }: Callers): {
  readonly pairs_per_s: number;
  readonly median_ms: number;
} {
  const time = new VirtualTime();
  const database = new SimulatedDatabase(time, MEASURED_MACHINE);
  const rows = new WindowRows(null);
  const until_ms = 1_000 * SECONDS;
  const hold_ms: number[] = [];
  const startNode = (callers_of_node: number) => {
    const node = new SimulatedNode(time, database, rows);
    let turn = 0;
    const call = () => {
      if (time.now_ms >= until_ms) return;
      turn += 1;
      const organization = turn % organizations;
      const asked_ms = time.now_ms;
      node.write(organization, () => {
        hold_ms.push(time.now_ms - asked_ms);
        node.write(organization, call);
      });
    };
    for (let caller = 0; caller < callers_of_node; caller += 1) call();
  };
  for (let node = 0; node < node_count; node += 1) startNode(Math.floor(callers / node_count));
  time.run();
  return { pairs_per_s: (1_000 * hold_ms.length) / time.now_ms, median_ms: quantile(hold_ms, 0.5) };
}
