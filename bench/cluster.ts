/**
 * Measures the effects of a cluster's faults on clients and books. Two real `tds serve` run with an instant model,
 * behind a balancer, on a PostgreSQL with a synchronous standby. Faults happen one after the other under load. Prints a
 * table of the clients' results, and exact totals. Exit code 1 if a check fails. Needs Linux with Debian's `postgresql`
 * package. It uses network namespaces if permitted, else loopback.
 *
 *   bun bench/cluster.ts [--clients 32] [--quiet 15] [--rounds 1] [--network namespaces|loopback] [--only kill,pause,…]
 *
 * `--quiet` is the seconds measured before and after each fault. Rounds after the first have a random order.
 */
import { parseArgs } from 'node:util';
import { cut, FAILOVER, type Fault, failOverBehind, hang, kill, pause, RESTART } from './cluster/faults.ts';
import { tableOf } from './cluster/measured.ts';
import { hasNamespaces, LoopbackNetwork, NamespaceNetwork } from './cluster/network.ts';
import { runCluster } from './cluster/run.ts';

const FAULTS: Readonly<Record<string, (round: number) => Fault>> = {
  kill: (round) => kill(round % 2),
  pause: (round) => pause((round + 1) % 2, 30),
  cut: (round) => cut(round % 2, 30),
  restart: () => RESTART,
  hang: () => hang(10),
  failover: () => FAILOVER,
  behind: () => failOverBehind(10),
};
/** The largest number of printed complaints. */
const COMPLAINTS_MAX = 20;

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '32' },
    quiet: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '1' },
    network: { type: 'string' },
    only: { type: 'string', default: Object.keys(FAULTS).join() },
  },
});

const in_namespaces = (values.network ?? (hasNamespaces() ? 'namespaces' : 'loopback')) === 'namespaces';
const network = in_namespaces ? new NamespaceNetwork() : new LoopbackNetwork();
// The namespaces end with this process.
process.on('SIGINT', () => process.exit(130));
const chosen = values.only.split(',');
const { phases, notes, totals, complaints } = await runCluster({
  clients: Number(values.clients),
  quiet_ms: Number(values.quiet) * 1_000,
  has_standby: true,
  network,
  faults: Array.from({ length: Number(values.rounds) }, (_, round) => inOrder(chosen, round)).flat(),
  onProgress: (line) => process.stderr.write(`${new Date().toISOString()} ${line}\n`),
});
const lines = [
  `In ${network.description}, ${values.clients} clients:`,
  '',
  tableOf(phases),
  '',
  ...notes.map((note) => `- ${note}`),
  '',
  JSON.stringify(totals),
  ...complaints.slice(0, COMPLAINTS_MAX).map((complaint) => `DOES NOT HOLD: ${complaint}`),
  ...(complaints.length > COMPLAINTS_MAX ? [`and ${complaints.length - COMPLAINTS_MAX} more`] : []),
];
process.stdout.write(`${lines.join('\n')}\n`);
process.exit(complaints.length === 0 ? 0 : 1);

/** Returns the faults of a round: the first in the order above, later ones shuffled, with the nodes in rotation. */
function inOrder(names: readonly string[], round: number): Fault[] {
  const faults = names.flatMap((name) => FAULTS[name]?.(round) ?? []);
  return round === 0 ? faults : faults.sort(() => Math.random() - 0.5);
}
