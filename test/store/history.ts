import fc from 'fast-check';
import type { Mode } from '../../src/questions/question.ts';
import { monthOf } from '../../src/time/month.ts';
import { keyRow } from '../ledger/support.ts';
import { checkpointAt, type StoredRows } from './stored-rows.ts';

export const DAY_MS = 86_400_000;
export const START_MS = Date.UTC(2026, 4, 3);
export const DAYS = 6;
/** In a later month than all of the history, so that all of it may be rolled up. */
export const NOW_MS = Date.UTC(2026, 6, 2);

/** Names that locales order otherwise than bytes do, some of them twice. */
const NAMES = [
  'anna',
  'Zoë',
  'zoe',
  'Zoe',
  'Émile',
  '～',
  '\u{1F600}',
  "O'Neil",
  'a b',
  'a-b',
  'anna',
] as const;
export const MODELS = ['decision-1', 'Decision-1', 'décision', 'decision_2'] as const;
export const ENDPOINTS = ['/v1/decisions', '/v1/systemone'] as const;
export const STATUSES = [200, 502, 503] as const;

/** Two organizations with two projects each, and two keys in every project. */
export const ORGANIZATIONS = ['org_b', 'org_A'] as const;
export const PROJECTS = ORGANIZATIONS.flatMap((organization_id) =>
  ['x', 'Y'].map((name) => ({ id: `proj_${organization_id}_${name}`, organization_id })),
);
export const KEYS = PROJECTS.flatMap(({ id: project_id, organization_id }) =>
  ['1', '2'].map((name) => ({ id: `key_${project_id}_${name}`, project_id, organization_id })),
);

export interface Event {
  readonly key: number;
  readonly after_ms: number;
  readonly kind: 'answered' | 'failed' | 'released' | 'held' | 'top_up' | 'refund';
  readonly amount: number;
  readonly model: string;
  readonly mode: Mode;
  readonly endpoint: string;
  readonly latency_ms: number;
  /** Where ids of requests stand in their order: not in that of time. */
  readonly id: number;
}

const event: fc.Arbitrary<Event> = fc.record({
  key: fc.nat({ max: KEYS.length - 1 }),
  after_ms: fc.oneof(
    fc.nat({ max: DAYS * DAY_MS - 1 }),
    fc
      .tuple(fc.nat({ max: DAYS - 1 }), fc.constantFrom(0, DAY_MS - 1))
      .map(([day, rest]) => day * DAY_MS + rest),
    // Many in a few minutes, so that several share a bucket and a millisecond.
    fc.nat({ max: 20 }).map((step) => 3 * DAY_MS + step * 10_000),
  ),
  kind: fc.constantFrom('answered', 'answered', 'answered', 'failed', 'released', 'top_up', 'refund', 'held'),
  amount: fc.oneof(fc.nat({ max: 500 }), fc.constantFrom(0, 2 ** 31, 2 ** 40)),
  model: fc.constantFrom(...MODELS),
  mode: fc.constantFrom('fast', 'consistent'),
  endpoint: fc.constantFrom(...ENDPOINTS),
  latency_ms: fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => value + 0),
  id: fc.nat(),
});

/** Events in any order; in some runs more than one chunk or page. */
export const events = fc.array(event, { maxLength: 80 });

const organizationOf = (id: string, name: string, credit_micros: number) => ({
  id,
  name,
  credit_micros,
  created_at_ms: 0,
});

/** The rows that such a history leaves, in the order of time; every hold of the last minute may be open still. */
export function rowsOf(
  given: readonly Event[],
): Required<Pick<StoredRows, 'ledgerEntries' | 'usageRecords'>> & StoredRows {
  const credit = new Map<string, number>(ORGANIZATIONS.map((id) => [id, 0]));
  const payments: NonNullable<StoredRows['payments']>[number][] = [];
  const ledgerEntries: NonNullable<StoredRows['ledgerEntries']>[number][] = [];
  const usageRecords: NonNullable<StoredRows['usageRecords']>[number][] = [];
  let last_entry_id = 0;
  const enter = (entry: Omit<(typeof ledgerEntries)[number], 'id'>) => {
    last_entry_id += 1;
    ledgerEntries.push({ id: last_entry_id, ...entry });
    credit.set(entry.organization_id, (credit.get(entry.organization_id) ?? 0) + entry.credit_delta_micros);
    return last_entry_id;
  };
  for (const [number, happened] of given.toSorted((a, b) => a.after_ms - b.after_ms).entries()) {
    const { kind, amount, model, mode, endpoint, latency_ms, id } = happened;
    const key = KEYS[happened.key];
    if (key === undefined) throw new RangeError(`there is no key ${happened.key}`);
    const { organization_id, project_id } = key;
    const at_ms = START_MS + happened.after_ms;
    if (kind === 'top_up' || kind === 'refund') {
      const payment_id = `pay_${number}`;
      const amount_micros = amount + 1;
      payments.push({
        id: payment_id,
        organization_id,
        provider: amount % 2 === 0 ? 'manual' : 'paddle',
        external_id: payment_id,
        kind,
        amount_micros,
        status: 'completed',
        created_at_ms: at_ms,
        settled_at_ms: at_ms,
      });
      enter({
        organization_id,
        kind,
        credit_delta_micros: kind === 'top_up' ? amount_micros : -amount_micros,
        held_delta_micros: 0,
        payment_id,
        created_at_ms: at_ms,
      });
      continue;
    }
    const request_id = `req_${id}_${number}`;
    const ofProject = { organization_id, project_id, month: monthOf(at_ms), created_at_ms: at_ms };
    if (kind !== 'failed') {
      const hold_entry_id = enter({
        ...ofProject,
        kind: 'hold',
        credit_delta_micros: 0,
        held_delta_micros: amount + 3,
        request_id,
      });
      if (kind === 'held') continue;
      enter({
        ...ofProject,
        kind: kind === 'answered' ? 'charge' : 'release',
        credit_delta_micros: kind === 'answered' ? 0 - amount : 0,
        held_delta_micros: -(amount + 3),
        hold_entry_id,
      });
    }
    const status = kind === 'answered' ? 200 : 502 + (amount % 2);
    usageRecords.push({
      ...{ request_id, time_ms: at_ms, organization_id, project_id, api_key_id: key.id },
      ...{ model, mode, endpoint, status, latency_ms },
      questions: status === 200 ? 1 + (amount % 7) : 0,
      input_tokens: amount * 2,
      cost_micros: status === 200 ? amount : 0,
    });
  }
  return {
    organizations: ORGANIZATIONS.map((id, index) =>
      organizationOf(id, NAMES[index + 2] ?? id, credit.get(id) ?? 0),
    ),
    projects: PROJECTS.map(({ id, organization_id }, index) => ({
      id,
      organization_id,
      name: NAMES[index] ?? id,
      // Two of one name are there only when one is archived.
      archived_at_ms: 0,
      created_at_ms: 0,
    })),
    apiKeys: KEYS.map(({ id, project_id }, index) => ({
      ...keyRow(id, project_id),
      name: NAMES[(index * 5) % NAMES.length] ?? id,
    })),
    payments,
    ledgerEntries,
    usageRecords,
    // The audit has seen everything before the newest holds.
    auditCheckpoints: [checkpointAt(last_entry_id)],
  };
}
