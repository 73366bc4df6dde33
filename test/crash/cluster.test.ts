import { describe, expect, test } from 'bun:test';
import { kill, pause, RESTART } from '../../bench/cluster/faults.ts';
import { tableOf } from '../../bench/cluster/measured.ts';
import { LoopbackNetwork } from '../../bench/cluster/network.ts';
import { runCluster } from '../../bench/cluster/run.ts';
import { isPostgresMissing } from '../support/postgres.ts';

/** Longer than a lease: a node that only looked at that would take the paused one for dead. */
const PAUSED_S = 27;
/** Both cores are other tests' while a lease runs out; faults begin and end under full load. */
const REST_MS = 500;
const TEST_TIMEOUT_MS = 300_000;

/** `bun bench/cluster.ts` has more faults, and two databases. */
describe.skipIf(isPostgresMissing())('two nodes under load on one PostgreSQL', () => {
  test(
    'keep exact books and end every hold when one is killed, one is paused, and the database crashes',
    async () => {
      const result = await runCluster({
        clients: 16,
        has_standby: false,
        network: new LoopbackNetwork(),
        faults: [kill(0), pause(1, PAUSED_S), RESTART],
        quiet_ms: 2_000,
        rest_ms: REST_MS,
        onProgress: () => undefined,
      });
      console.log([tableOf(result.phases), ...result.notes, JSON.stringify(result.totals)].join('\n'));
      expect(result.complaints).toEqual([]);
    },
    TEST_TIMEOUT_MS,
  );
});
