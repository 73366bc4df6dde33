import { MAIN } from '../../test/support/program.ts';
import { CUT, NO_ANSWER, type Seen } from './clients.ts';
import type { Cluster } from './cluster.ts';
import { ALLOWED, type FaultTimes } from './measured.ts';

const WINDOW_MS = 60_000;
/** The time after a fault's end from which no client notices it. */
const SETTLED_MS = 10_000;

/** Exact totals, and a sentence for each violation. */
export interface BooksResult {
  readonly totals: Readonly<Record<string, number>>;
  readonly complaints: readonly string[];
}

interface Charge {
  readonly request_id: string;
  readonly cost_micros: number;
  readonly status: number | null;
  readonly usage_micros: number | null;
}

interface Balance {
  readonly id: string;
  readonly credit_micros: number;
  readonly held_micros: number;
  readonly charged_micros: number;
}

const CHARGES = `
  SELECT held.request_id, (-ended.credit_delta_micros)::float8 AS cost_micros,
    usage.status::integer AS status, usage.cost_micros::float8 AS usage_micros
  FROM ledger_entries AS ended JOIN ledger_entries AS held ON held.id = ended.hold_entry_id
  LEFT JOIN usage_records AS usage ON usage.request_id = held.request_id
  WHERE ended.kind = 'charge'`;

const BALANCES = `
  SELECT id, credit_micros::float8 AS credit_micros, held_micros::float8 AS held_micros,
    (SELECT coalesce(-sum(credit_delta_micros), 0)::float8 FROM ledger_entries
      WHERE organization_id = organizations.id AND kind = 'charge') AS charged_micros
  FROM organizations`;

const OPEN_HOLDS = `
  SELECT count(*)::integer AS open FROM ledger_entries AS held WHERE kind = 'hold'
    AND NOT EXISTS (SELECT FROM ledger_entries AS ended WHERE ended.hold_entry_id = held.id)`;

/** Compares the database, which no node serves any more, with the clients' answers. */
export async function checkBooks(
  cluster: Cluster,
  seen: readonly Seen[],
  faults: readonly FaultTimes[],
): Promise<BooksResult> {
  const complaints: string[] = [];
  const charges = new Map(
    (await cluster.query<Charge>(CHARGES)).map((charge) => [charge.request_id, charge]),
  );
  let acknowledged_micros = 0;
  const told = new Set<string>();
  for (const { request_id, outcome, cost_micros, organization } of seen) {
    const refusal = cluster.organizations[organization]?.refusal;
    if (!ALLOWED.has(outcome) && outcome !== refusal) complaints.push(`a client was told ${outcome}`);
    if (request_id === null) continue;
    const charge = charges.get(request_id);
    if (outcome === '200') {
      told.add(request_id);
      acknowledged_micros += cost_micros ?? Number.NaN;
      const is_kept =
        charge?.cost_micros === cost_micros && charge?.usage_micros === cost_micros && charge?.status === 200;
      if (!is_kept)
        complaints.push(
          `${request_id} was told to cost ${cost_micros}, and the database has ${JSON.stringify(charge)}`,
        );
    } else if (outcome !== CUT && outcome !== NO_ANSWER && charge !== undefined) {
      complaints.push(`${request_id} was refused with ${outcome}, and charged`);
    }
  }
  const untold = [...charges.keys()].filter((request_id) => !told.has(request_id)).length;
  const cut = seen.filter(({ outcome }) => outcome === CUT || outcome === NO_ANSWER).length;
  if (untold > cut)
    complaints.push(`${untold} charges nobody was told of, and only ${cut} requests were cut`);

  const [holds] = await cluster.query<{ open: number }>(OPEN_HOLDS);
  if (holds?.open !== 0) complaints.push(`${holds?.open} holds are open`);
  const balances = await cluster.query<Balance>(BALANCES);
  for (const { id, credit_micros } of cluster.organizations) {
    const balance = balances.find((one) => one.id === id);
    const is_right =
      balance?.held_micros === 0 && balance.credit_micros === credit_micros - balance.charged_micros;
    if (!is_right) complaints.push(`paid ${credit_micros}, and the balance is ${JSON.stringify(balance)}`);
  }
  complaints.push(
    ...unsettled(cluster, seen, faults),
    ...windowsExceeded(cluster, seen, faults),
    ...(await auditOf(cluster)),
  );
  const charged_micros = [...charges.values()].reduce((sum, { cost_micros }) => sum + cost_micros, 0);
  return {
    totals: {
      requests: seen.length,
      answered: told.size,
      acknowledged_micros,
      charges: charges.size,
      charged_micros,
      charges_nobody_was_told_of: untold,
      requests_cut: cut,
      open_holds: holds?.open ?? Number.NaN,
      longest_wait_ms: Math.round(Math.max(...seen.map(({ from_ms, to_ms }) => to_ms - from_ms))),
    },
    complaints: [...new Set(complaints)],
  };
}

/** Returns the errors that clients got long after a fault's end. */
function unsettled(cluster: Cluster, seen: readonly Seen[], faults: readonly FaultTimes[]): string[] {
  return faults.flatMap(({ name, to_ms, after_ms }) =>
    seen
      .filter((one) => one.from_ms > to_ms + SETTLED_MS && one.to_ms < after_ms)
      .filter(
        ({ outcome, organization }) =>
          outcome !== '200' && outcome !== cluster.organizations[organization]?.refusal,
      )
      .map(({ outcome }) => `a client was told ${outcome} more than 10 s after: ${name}`),
  );
}

/** Returns the violations of rate limits. Requests that began and ended within a minute were admitted within it. */
function windowsExceeded(cluster: Cluster, seen: readonly Seen[], faults: readonly FaultTimes[]): string[] {
  const complaints: string[] = [];
  const losses = faults.filter(({ loses_windows }) => loses_windows);
  for (const [organization, { requests_per_minute }] of cluster.organizations.entries()) {
    const answered = seen.filter((one) => one.organization === organization && one.outcome === '200');
    if (answered.length <= requests_per_minute) continue;
    for (const { from_ms } of answered) {
      const until_ms = from_ms + WINDOW_MS;
      if (losses.some((loss) => loss.from_ms < until_ms && loss.to_ms > from_ms)) continue;
      const within = answered.filter((one) => one.from_ms >= from_ms && one.to_ms <= until_ms).length;
      if (within > requests_per_minute)
        complaints.push(`${within} requests were answered in a minute that may have ${requests_per_minute}`);
    }
  }
  return complaints;
}

async function auditOf({ database_url, nodes: [node] }: Cluster): Promise<string[]> {
  const command = [
    process.execPath,
    MAIN,
    'audit',
    '--database',
    database_url,
    '--data',
    node?.directory ?? '',
  ];
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [code, output, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return code === 0 ? [] : [`tds audit ended with ${code}: ${output}${errors}`];
}
