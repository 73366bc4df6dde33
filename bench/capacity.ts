/**
 * Where PostgreSQL bends when 1,000 nodes and 100,000 organizations use it: a simulation of the rate windows and of the
 * grouped commits of holds and charges, in virtual time. Service times are measured ones (`bench/capacity/costs.ts`);
 * network, disk and cores of the server are assumed. `bench/capacity.md` says what follows.
 *
 *   bun bench/capacity.ts [--only callers|nodes|routing|skew|organizations|one-organization|machine|pooler|windows]
 *
 * Prints a JSON line for each run. Randomness is seeded: the lines are the same each time.
 */
import { parseArgs } from 'node:util';
import { simulateCallers } from './capacity/callers.ts';
import { type ClusterLoad, type ClusterRun, simulateCluster, summaryOf } from './capacity/cluster.ts';
import { ASSUMED_MACHINE, type Machine } from './capacity/costs.ts';
import { report, rounded } from './support/statistics.ts';

/** 1,000 nodes of two cores with the embedded model: 1,478 tokens a second each, 430 a request. */
const REQUESTS_PER_S = 3_400;
const CLUSTER = { nodes: 1_000, organizations: 100_000, skew: 1, requests_per_s: REQUESTS_PER_S };
/** Requests in a run, so that all runs take less than a minute. */
const REQUESTS = 16_000;

type Load = Omit<ClusterLoad, 'seconds'> & { readonly seconds?: number };

function run(table: string, load: Load): ClusterRun {
  const { machine, ...shown } = load;
  const seconds = load.seconds ?? Math.max(1, REQUESTS / load.requests_per_s);
  const result = simulateCluster({ ...load, seconds });
  if (result.requests.length !== result.arrived) throw new Error('a request has no end');
  const numbers = { ...shown, ...machine, largest_share: result.largest_share, ...summaryOf(result) };
  report({ bench: 'capacity', table, ...roundedAll(numbers) });
  return result;
}

/** The measurements of `bench/ledger.ts --postgres`, on the machine of the measurements. */
function callers(): void {
  for (const organizations of [1, 1_000]) {
    for (const count of [1, 16, 64]) {
      for (const nodes of [1, 2].filter((nodes) => nodes <= count)) {
        const simulated = simulateCallers({ nodes, callers: count, organizations });
        report({
          bench: 'capacity',
          table: 'callers',
          organizations,
          nodes,
          callers: count,
          ...roundedAll(simulated),
        });
      }
    }
  }
}

function nodes(): void {
  for (const requests_per_s of [1_000, REQUESTS_PER_S, 10_000])
    for (const count of [4, 20, 100, 1_000]) run('nodes', { ...CLUSTER, nodes: count, requests_per_s });
}

/** A load balancer that sends each organization to some nodes only. */
function routing(): void {
  for (const [count, nodes_an_organization] of [
    [1_000, 4],
    [1_000, 1],
    [20, 2],
    [20, 1],
  ] as const)
    for (const requests_per_s of [REQUESTS_PER_S, 10_000, 30_000])
      run('routing', { ...CLUSTER, nodes: count, nodes_an_organization, requests_per_s });
}

function skew(): void {
  for (const exponent of [0, 0.8, 0.9, 1, 1.2]) run('skew', { ...CLUSTER, skew: exponent });
}

function organizations(): void {
  for (const count of [1_000, 10_000, 100_000])
    run('organizations', { ...CLUSTER, organizations: count, skew: 0.8 });
}

/** All requests of one organization. */
function oneOrganization(): void {
  for (const count of [1, 4, 20, 1_000])
    for (const requests_per_s of [100, 150, 200, 500, 1_000, 3_000])
      run('one-organization', {
        ...CLUSTER,
        nodes: count,
        organizations: 1,
        requests_per_s,
        seconds: Math.min(20, 10_000 / requests_per_s),
      });
}

function machines(): void {
  const changes: readonly Partial<Machine>[] = [
    {},
    { round_trip_ms: 1 },
    { flush_ms: 2 },
    { standby: null },
    { standby: { round_trip_ms: 2, flush_ms: 0.5 } },
    { cores: 8 },
    { cores: 4 },
  ];
  for (const change of changes) {
    const machine = { ...ASSUMED_MACHINE, ...change };
    run('machine', { ...CLUSTER, skew: 0.8, machine });
    // More than its row's lock allows: as many commits as it does allow.
    run('machine', { ...CLUSTER, organizations: 1, requests_per_s: 400, seconds: 5, machine });
  }
}

function pooler(): void {
  for (const exponent of [0.8, 1])
    for (const pooled_connections of exponent === 1 ? [40, 160] : [10, 20, 40])
      run('pooler', { ...CLUSTER, skew: exponent, machine: { ...ASSUMED_MACHINE, pooled_connections } });
}

function windows(): void {
  const only = { ...CLUSTER, is_windows_only: true };
  for (const count of [20, 1_000])
    for (const requests_per_s of [1_000, 2_000, 3_000, 5_000])
      run('windows', { ...only, nodes: count, organizations: 1, requests_per_s });
  for (const requests_per_s of [10_000, 30_000, 50_000]) run('windows', { ...only, requests_per_s });
  // The highest tier's limit, and an organization that asks for four times as much.
  const limit = { organizations: 1, requests_per_minute: 5_000, requests_per_s: 330, seconds: 130 };
  const { requests } = run('windows', { ...only, ...limit });
  report({ bench: 'capacity', table: 'windows', ...limit, most_in_60_s: mostInAMinute(requests) });
}

/** The most requests that were let in during any 60 seconds. */
function mostInAMinute(requests: ClusterRun['requests']): number {
  const times = requests.flatMap(({ admitted_at_ms }) => admitted_at_ms ?? []).sort((a, b) => a - b);
  let first = 0;
  let most = 0;
  for (const [index, at_ms] of times.entries()) {
    while ((times[first] ?? at_ms) <= at_ms - 60_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

function roundedAll(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const round = (value: unknown): unknown => {
    if (typeof value === 'number') return rounded(value);
    return typeof value === 'object' && value !== null ? roundedAll({ ...value }) : value;
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, round(value)]));
}

const TABLES: Readonly<Record<string, () => void>> = {
  callers,
  nodes,
  routing,
  skew,
  organizations,
  'one-organization': oneOrganization,
  machine: machines,
  pooler,
  windows,
};
const { values } = parseArgs({ options: { only: { type: 'string' } } });
const wanted = values.only === undefined ? Object.values(TABLES) : [TABLES[values.only]];
for (const table of wanted) {
  if (table === undefined) throw new Error(`--only ${Object.keys(TABLES).join('|')}`);
  table();
}
