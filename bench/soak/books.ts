import { join } from 'node:path';
import type { Db } from '../../db/sqlite/connection.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import type { Acknowledged, Observed } from './observed.ts';
import type { Served } from './served.ts';

/** A charge of the ledger. */
export interface Charge {
  readonly id: number;
  readonly request_id: string;
  readonly project_id: string;
  readonly cost_micros: number;
  readonly created_at_ms: number;
}

/** A backup that was made while the service was used. */
export interface Backup {
  readonly file: string;
  readonly begun_ms: number;
}

/** The charges of one project without a seen answer. */
export interface UnseenCharges {
  readonly project_id: string;
  readonly charges: readonly Charge[];
}

/** The totals of the books, and those of the clients' answers. */
export interface BooksReport {
  readonly charges: number;
  readonly charged_micros: number;
  readonly acknowledged: number;
  readonly acknowledged_micros: number;
  readonly unseen: readonly UnseenCharges[];
  readonly top_ups_micros: number;
  readonly open_holds: number;
  readonly backups: readonly { readonly acknowledged_before: number; readonly charges: number }[];
}

/**
 * Compares the ledger and each restored backup with the clients' answers, and complains of every difference. The
 * service has ended.
 */
export async function checkBooks(
  served: Served,
  observed: Observed,
  backups: readonly Backup[],
): Promise<BooksReport> {
  await audit(served, observed, served.data, 'The audit');
  const db = openDataDirectory(served.data, { create: false });
  try {
    const charges = chargesOf(db);
    checkAcknowledged(observed, charges, [...observed.acknowledged], 'the ledger');
    const restored = [];
    for (const backup of backups) restored.push(await checkBackup(served, observed, backup, charges));
    const open_holds = openHolds(db);
    if (open_holds !== 0) observed.complain(`${open_holds} holds did not end.`);
    return {
      charges: charges.length,
      charged_micros: sumOf(charges),
      acknowledged: observed.acknowledged.size,
      acknowledged_micros: sumOf([...observed.acknowledged.values()]),
      unseen: unseenCharges(observed, charges),
      top_ups_micros: topUps(db),
      open_holds,
      backups: restored,
    };
  } finally {
    db.$client.close();
  }
}

async function audit(served: Served, observed: Observed, data: string, name: string): Promise<void> {
  try {
    await served.tds(['audit'], data);
  } catch (error) {
    observed.complain(`${name} is not clean: ${error}`);
  }
}

function chargesOf(db: Db): readonly Charge[] {
  return db.$client
    .query<Charge, []>(
      `SELECT ended.id, hold.request_id, hold.project_id, -ended.credit_delta_micros AS cost_micros,
        ended.created_at_ms
      FROM ledger_entries AS ended JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.kind = 'charge' ORDER BY ended.id`,
    )
    .all();
}

function openHolds(db: Db): number {
  return (
    db.$client
      .query<{ count: number }, []>(
        `SELECT count(*) AS count FROM ledger_entries AS hold
        WHERE hold.kind = 'hold'
          AND NOT EXISTS (SELECT 1 FROM ledger_entries AS ended WHERE ended.hold_entry_id = hold.id)`,
      )
      .get()?.count ?? Number.NaN
  );
}

function topUps(db: Db): number {
  return (
    db.$client
      .query<{ sum: number }, []>(
        "SELECT sum(credit_delta_micros) AS sum FROM ledger_entries WHERE kind = 'top_up'",
      )
      .get()?.sum ?? Number.NaN
  );
}

/** Checks that every acknowledged charge is stored once and with its cost. */
function checkAcknowledged(
  observed: Observed,
  charges: readonly Charge[],
  acknowledged: readonly (readonly [string, Acknowledged])[],
  place: string,
): void {
  const by_request = new Map(charges.map((charge) => [charge.request_id, charge]));
  if (by_request.size !== charges.length) observed.complain(`A request was charged twice in ${place}.`);
  for (const [request_id, { cost_micros, project_id }] of acknowledged) {
    const charge = by_request.get(request_id);
    if (charge?.cost_micros !== cost_micros || charge.project_id !== project_id)
      observed.complain(`${request_id} cost ${cost_micros}, and ${place} has ${JSON.stringify(charge)}.`);
  }
}

/** Returns the charges without a seen answer. A project may not have more than its requests without a seen answer. */
function unseenCharges(observed: Observed, charges: readonly Charge[]): readonly UnseenCharges[] {
  const by_project = Map.groupBy(
    charges.filter(({ request_id }) => !observed.acknowledged.has(request_id)),
    ({ project_id }) => project_id,
  );
  return [...by_project].map(([project_id, unseen]) => {
    const unseen_requests = observed.unseen.get(project_id) ?? 0;
    if (unseen.length > unseen_requests)
      observed.complain(
        `${unseen.length} charges of ${project_id} were told to nobody, and ${unseen_requests} of its requests had no answer.`,
      );
    return { project_id, charges: unseen };
  });
}

/** Restores a backup elsewhere. It must be one state of the ledger, with all charges acknowledged before it began. */
async function checkBackup(
  served: Served,
  observed: Observed,
  { file, begun_ms }: Backup,
  later: readonly Charge[],
): Promise<{ readonly acknowledged_before: number; readonly charges: number }> {
  const directory = join(served.root, `restored-${begun_ms}`);
  await served.tds(['restore', file], directory);
  await audit(served, observed, directory, `The audit of the backup ${file}`);
  const db = openDataDirectory(directory, { create: false });
  try {
    const charges = chargesOf(db);
    const before = [...observed.acknowledged].filter(([, { at_ms }]) => at_ms < begun_ms);
    checkAcknowledged(observed, charges, before, `the backup ${file}`);
    const last_id = charges.at(-1)?.id ?? 0;
    const until_then = later.filter(({ id }) => id <= last_id);
    if (!Bun.deepEquals(charges, until_then))
      observed.complain(`The charges of the backup ${file} are not those of one moment of the ledger.`);
    return { acknowledged_before: before.length, charges: charges.length };
  } finally {
    db.$client.close();
  }
}

/** Returns the sum of the costs. */
export function sumOf(charges: readonly { readonly cost_micros: number }[]): number {
  return charges.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
}
