import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { UsageDay } from '../../src/store/roll-up-records.ts';
import type { UsageRecords } from '../../src/store/usage-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, SHUFFLED } from './rows.ts';
import { checkpointAt, type StoredRows } from './stored-rows.ts';

const NOON_MS = Date.UTC(2026, 4, 5, 12);
const DAY_MS = 86_400_000;

const A = { organization_id: 'org_a', project_id: 'proj_a', api_key_id: 'key_a' } as const;
const B = { organization_id: 'org_b', project_id: 'proj_b', api_key_id: 'key_b' } as const;
/** In the first organization. */
const OTHER_PROJECT = { organization_id: 'org_a', project_id: 'proj_c', api_key_id: 'key_c' } as const;

const row = (request_id: string, values: Partial<UsageRow> = {}): UsageRow => ({
  ...A,
  request_id,
  time_ms: NOON_MS,
  model: 'decision-1',
  mode: 'fast',
  endpoint: '/v1/decisions',
  status: 200,
  questions: 2,
  input_tokens: 30,
  cost_micros: 4,
  latency_ms: 1.5,
  ...values,
});

const FAILED = { status: 502, questions: 0, cost_micros: 0 };

const usageDay = (values: Partial<UsageDay> = {}): UsageDay => ({
  ...A,
  day: '2026-05-05',
  model: 'decision-1',
  mode: 'fast',
  endpoint: '/v1/decisions',
  status: 200,
  requests: 3,
  questions: 6,
  input_tokens: 90,
  cost_micros: 12,
  ...values,
});

/** Accounts whose names are those of their ids, in order: "b" names the first organization. */
const ACCOUNTS: StoredRows = {
  organizations: [
    { id: 'org_a', name: 'b', created_at_ms: 0 },
    { id: 'org_b', name: 'Ä', created_at_ms: 0 },
  ],
  projects: [A, B, OTHER_PROJECT].map(({ project_id: id, organization_id }) => ({
    ...{ id, organization_id, name: `${id}'s name`, created_at_ms: 0 },
  })),
  apiKeys: [A, B, OTHER_PROJECT].map(({ api_key_id: id, project_id }) => ({
    ...{ id, project_id, name: `${id}'s name`, secret_sha256: id, display_prefix: 'sk', created_at_ms: 0 },
  })),
};

const ids = (rows: readonly { readonly request_id: string }[]) => rows.map(({ request_id }) => request_id);

describe.each(DATABASES)('usage in $name', ({ open }) => {
  let database: OpenDatabase;
  let usage: UsageRecords;
  beforeEach(async () => {
    database = await open();
    usage = database.store.usage;
    await database.insert(ACCOUNTS);
  });
  afterEach(() => database.close());

  const record = (...usageRecords: UsageRow[]) => database.insert({ usageRecords });

  describe('a page', () => {
    test('has rows as they were written, with the names of project and key', async () => {
      const {
        organization_id: _,
        project_id: _project,
        api_key_id: _key,
        ...shown
      } = row('req_1', {
        latency_ms: 0.1 + 0.2,
        input_tokens: Number.MAX_SAFE_INTEGER,
      });
      await record(row('req_1', shown));
      expect(await usage.page({ organization_id: 'org_a' }, 9, undefined)).toEqual([
        { ...shown, project: "proj_a's name", api_key: "key_a's name" },
      ]);
    });

    test('is newest first, by the bytes of the id within a millisecond, and goes on after a place', async () => {
      await record(
        row('late', { time_ms: NOON_MS + 1 }),
        ...SHUFFLED.map((id) => row(id)),
        row('early', { time_ms: NOON_MS - 1 }),
      );
      const newest = ['late', ...BYTEWISE.toReversed(), 'early'];
      const filter = { organization_id: 'org_a' };
      expect(ids(await usage.page(filter, 100, undefined))).toEqual(newest);
      for (const [index, request_id] of newest.entries()) {
        const after = await usage.page({ ...filter, request_id }, 1, undefined);
        expect(ids(await usage.page(filter, 3, after[0]))).toEqual(newest.slice(index + 1, index + 4));
      }
    });

    test('has what the filter asks for: times from the first on and before the last, and each column', async () => {
      await record(
        row('req_1', { time_ms: NOON_MS - 1 }),
        row('req_2'),
        row('req_3', { time_ms: NOON_MS + 1 }),
        row('req_4', { ...OTHER_PROJECT, model: 'other' }),
        row('req_5', { ...B, mode: 'consistent' }),
        row('req_6', { ...FAILED, endpoint: '/v1/systemone' }),
      );
      const found = async (filter: Partial<Parameters<UsageRecords['page']>[0]>) =>
        ids(await usage.page({ organization_id: null, ...filter }, 100, undefined)).sort();
      expect(await found({})).toEqual(['req_1', 'req_2', 'req_3', 'req_4', 'req_5', 'req_6']);
      expect(
        await found({ from_ms: NOON_MS, to_ms: NOON_MS + 1, project_id: 'proj_a', status: 200 }),
      ).toEqual(['req_2']);
      expect(await found({ organization_id: 'org_b' })).toEqual(['req_5']);
      expect(await found({ project_id: 'proj_c' })).toEqual(['req_4']);
      expect(await found({ api_key_id: 'key_c' })).toEqual(['req_4']);
      expect(await found({ model: 'other' })).toEqual(['req_4']);
      expect(await found({ mode: 'consistent' })).toEqual(['req_5']);
      expect(await found({ endpoint: '/v1/systemone' })).toEqual(['req_6']);
      expect(await found({ status: 502 })).toEqual(['req_6']);
      expect(await found({ request_id: 'req_3' })).toEqual(['req_3']);
      expect(await found({ request_id: 'req_3', organization_id: 'org_b' })).toEqual([]);
    });

    test('of what no row can have is empty, whatever a client writes there', async () => {
      await record(row('req_1'));
      for (const text of ['', 'REQ_1', 'req_%', 'req_1\u0000', '\u0000', '\ud800', "' OR ''='"]) {
        const filter = { organization_id: 'org_a' };
        expect(await usage.page({ ...filter, request_id: text }, 9, undefined)).toEqual([]);
        expect(
          await usage.page({ ...filter, model: text, endpoint: text, project_id: text }, 9, undefined),
        ).toEqual([]);
        const place = { time_ms: NOON_MS - 1, request_id: text };
        expect(await usage.page(filter, 9, place)).toEqual([]);
      }
    });
  });

  test('the days with usage are those of rows and of what was rolled up', async () => {
    expect(await usage.daysWithUsage(null)).toBeUndefined();
    await record(
      row('req_1'),
      row('req_2', { time_ms: NOON_MS + 2 * DAY_MS }),
      row('req_3', { ...B, time_ms: NOON_MS + 3 * DAY_MS }),
    );
    const days = { first_day: '2026-05-05', last_day: '2026-05-07' };
    expect(await usage.daysWithUsage('org_a')).toEqual(days);
    expect(await usage.daysWithUsage('org_unknown')).toBeUndefined();
    await database.insert({
      usageDays: [usageDay({ day: '2026-05-06' }), usageDay({ ...B, day: '2025-12-31' })],
    });
    expect(await usage.daysWithUsage('org_a')).toEqual(days);
    expect(await usage.daysWithUsage('org_b')).toEqual({ first_day: '2025-12-31', last_day: '2026-05-08' });
    expect(await usage.daysWithUsage(null)).toEqual({ first_day: '2025-12-31', last_day: '2026-05-08' });
  });

  test('the totals of a day add up rows and what was rolled up, ordered by name', async () => {
    await database.insert({
      usageDays: [usageDay(), usageDay({ ...B, input_tokens: 2 ** 50 }), usageDay({ day: '2026-05-04' })],
    });
    const start_ms = Date.UTC(2026, 4, 5);
    await record(
      row('req_1', { time_ms: start_ms }),
      row('req_2', { time_ms: start_ms + DAY_MS - 1 }),
      row('req_3', { ...OTHER_PROJECT, ...FAILED }),
      row('req_4', { time_ms: start_ms - 1 }),
      row('req_5', { time_ms: start_ms + DAY_MS }),
      row('req_6', { mode: 'consistent' }),
    );
    const group = { model: 'decision-1', mode: 'fast', endpoint: '/v1/decisions', status: 200 };
    const first = { organization: 'b', project: "proj_a's name", api_key: "key_a's name", ...group };
    const one = { requests: 1, questions: 2, input_tokens: 30, cost_micros: 4 };
    const ofA: unknown[] = [
      { ...first, ...one, mode: 'consistent' },
      { ...first, requests: 5, questions: 10, input_tokens: 150, cost_micros: 20 },
      { ...first, ...one, project: "proj_c's name", api_key: "key_c's name", ...FAILED },
    ];
    const ofB = { ...first, organization: 'Ä', project: "proj_b's name", api_key: "key_b's name" };
    expect<unknown>(await usage.totalsOfDay('2026-05-05', { organization_id: 'org_a' })).toEqual(ofA);
    expect<unknown>(await usage.totalsOfDay('2026-05-05', { organization_id: null })).toEqual([
      ...ofA,
      { ...ofB, requests: 3, questions: 6, input_tokens: 2 ** 50, cost_micros: 12 },
    ]);
    expect<unknown>(await usage.totalsOfDay('2026-05-05', { organization_id: 'org_a', status: 502 })).toEqual(
      ofA.slice(2),
    );
    expect(await usage.totalsOfDay('2026-05-03', { organization_id: null })).toEqual([]);
  });

  test('what was rolled up is told of the days that are asked for, both included', async () => {
    expect(await usage.rolledUp({ organization_id: null }, {})).toBeUndefined();
    const days = ['2026-05-04', '2026-05-05', '2026-05-06'];
    await database.insert({
      usageDays: [...days.map((day) => usageDay({ day })), usageDay({ ...B, requests: 10 })],
    });
    const ofA = { organization_id: 'org_a' };
    expect(await usage.rolledUp(ofA, {})).toEqual({ requests: 9, last_day: '2026-05-06' });
    expect(await usage.rolledUp(ofA, { last_day: '2026-05-05' })).toEqual({
      requests: 6,
      last_day: '2026-05-05',
    });
    expect(await usage.rolledUp(ofA, { first_day: '2026-05-06' })).toEqual({
      requests: 3,
      last_day: '2026-05-06',
    });
    expect(await usage.rolledUp(ofA, { first_day: '2026-05-07' })).toBeUndefined();
    expect(await usage.rolledUp({ ...ofA, mode: 'consistent' }, {})).toBeUndefined();
    expect(await usage.rolledUp({ organization_id: null }, {})).toEqual({
      requests: 19,
      last_day: '2026-05-06',
    });
  });

  test('what was admitted after a time, and not after another, is told with its tokens', async () => {
    await record(
      ...[-1, 0, 1, 2].map((step) => row(`req_${step}`, { time_ms: NOON_MS + step })),
      row('other', { ...B, ...FAILED, time_ms: NOON_MS + 1 }),
    );
    const told = (rows: Awaited<ReturnType<UsageRecords['admittedAfter']>>) =>
      rows
        .map(
          ({ organization_id, time_ms, status, input_tokens }) =>
            `${organization_id} ${time_ms - NOON_MS} ${status} ${input_tokens}`,
        )
        .sort();
    const within = ['org_a 1 200 30', 'org_b 1 502 30'];
    expect(told(await usage.admittedAfter(NOON_MS, NOON_MS + 1))).toEqual(within);
    expect(told(await usage.admittedAfter(NOON_MS))).toEqual([
      'org_a 1 200 30',
      'org_a 2 200 30',
      'org_b 1 502 30',
    ]);
    expect(await usage.admittedAfter(NOON_MS + 2)).toEqual([]);
    expect(await usage.newestTime_ms()).toBe(NOON_MS + 2);
  });

  test('without usage there is no newest time', async () => {
    expect(await usage.newestTime_ms()).toBeUndefined();
  });

  describe('for the roll-up', () => {
    const MONTH = '2026-05';
    const ofLedger = {
      organization_id: A.organization_id,
      project_id: A.project_id,
      month: MONTH,
      created_at_ms: NOON_MS,
    };
    const hold = (id: number, request_id: string) =>
      ({ ...ofLedger, id, kind: 'hold', credit_delta_micros: 0, held_delta_micros: 10, request_id }) as const;
    const charge = (id: number, hold_entry_id: number) =>
      ({
        ...ofLedger,
        id,
        kind: 'charge',
        credit_delta_micros: -4,
        held_delta_micros: -10,
        hold_entry_id,
        created_at_ms: NOON_MS + 7,
      }) as const;
    const release = (id: number, hold_entry_id: number) =>
      ({
        ...ofLedger,
        id,
        kind: 'release',
        credit_delta_micros: 0,
        held_delta_micros: -10,
        hold_entry_id,
      }) as const;
    const checked = (last_entry_id: number): StoredRows => ({
      auditCheckpoints: [checkpointAt(last_entry_id)],
    });
    const entryOf = (entry_id: number, values: object = {}) => ({
      ...{ entry_id, at_ms: NOON_MS, organization_id: 'org_a', project_id: 'proj_a', month: MONTH },
      ...{ credit_delta_micros: 0, held_delta_micros: 10, ...values },
    });

    test('requests are the holds that the audit has checked, oldest first, with their ends and usage', async () => {
      await database.insert({
        ledgerEntries: [
          hold(1, 'req_1'),
          hold(2, 'req_2'),
          charge(3, 1),
          hold(4, 'req_3'),
          hold(5, 'req_4'),
          release(6, 4),
          charge(7, 2),
          hold(8, 'req_5'),
        ],
      });
      await record(row('req_1'), row('req_4', FAILED));
      expect(await usage.requestsInLedger(0, 100)).toEqual([]);
      await database.insert(checked(6));
      const found = [
        {
          request_id: 'req_1',
          hold: entryOf(1),
          end: entryOf(3, {
            kind: 'charge',
            at_ms: NOON_MS + 7,
            credit_delta_micros: -4,
            held_delta_micros: -10,
          }),
          usage: {
            time_ms: NOON_MS,
            organization_id: 'org_a',
            project_id: 'proj_a',
            status: 200,
            cost_micros: 4,
          },
        },
        // Its end was not checked.
        { request_id: 'req_2', hold: entryOf(2), end: undefined, usage: undefined },
        {
          request_id: 'req_3',
          hold: entryOf(4),
          end: entryOf(6, { kind: 'release', held_delta_micros: -10 }),
          usage: undefined,
        },
        {
          request_id: 'req_4',
          hold: entryOf(5),
          end: undefined,
          usage: {
            time_ms: NOON_MS,
            organization_id: 'org_a',
            project_id: 'proj_a',
            status: 502,
            cost_micros: 0,
          },
        },
      ];
      expect<unknown>(await usage.requestsInLedger(0, 100)).toEqual(found);
      expect<unknown>(await usage.requestsInLedger(1, 2)).toEqual(found.slice(1, 3));
    });

    test('requests that the ledger does not know are told oldest first, in the times that are asked for', async () => {
      await database.insert({ ledgerEntries: [hold(1, 'req_held')] });
      await record(
        row('req_held'),
        ...[3, 1, 0, 2, 4].map((step) => row(`req_${step}`, { ...FAILED, time_ms: NOON_MS + step })),
      );
      const told = await usage.requestsOutsideLedger(NOON_MS, NOON_MS + 4, 3);
      expect(told).toEqual(
        [0, 1, 2].map((step) => ({ request_id: `req_${step}`, time_ms: NOON_MS + step, cost_micros: 0 })),
      );
      expect(ids(await usage.requestsOutsideLedger(NOON_MS + 1, NOON_MS + 4, 100))).toEqual([
        'req_1',
        'req_2',
        'req_3',
      ]);
    });

    test('what is deleted is told, and gone', async () => {
      const held = [hold(1, 'req_1'), hold(2, 'req_2'), charge(3, 1), charge(4, 2), hold(5, 'req_3')];
      await database.insert({ ledgerEntries: held });
      const rows = [row('req_1'), row('req_2', FAILED), row('req_3')];
      await record(...rows);
      const pairs = [
        { hold_entry_id: 1, end_entry_id: 3 },
        { hold_entry_id: 2, end_entry_id: 4 },
      ];
      const entries = await usage.deleteEntries(pairs);
      const project = { organization_id: 'org_a', project_id: 'proj_a' };
      expect(entries.toSorted((a, b) => a.entry_id - b.entry_id)).toEqual([
        { entry_id: 1, ...project, kind: 'hold', credit_delta_micros: 0, held_delta_micros: 10 },
        { entry_id: 2, ...project, kind: 'hold', credit_delta_micros: 0, held_delta_micros: 10 },
        { entry_id: 3, ...project, kind: 'charge', credit_delta_micros: -4, held_delta_micros: -10 },
        { entry_id: 4, ...project, kind: 'charge', credit_delta_micros: -4, held_delta_micros: -10 },
      ]);
      expect(await usage.deleteEntries(pairs)).toEqual([]);
      expect(await usage.deleteEntries([])).toEqual([]);
      expect(await database.count('ledger_entries')).toBe(1);
      const deleted = await usage.deleteUsage(['req_1', 'req_none', 'req_2']);
      expect(deleted.toSorted((a, b) => (a.request_id < b.request_id ? -1 : 1))).toEqual(
        rows.slice(0, 2).map(({ time_ms: _time, latency_ms: _latency, ...summed }) => summed),
      );
      expect(await usage.deleteUsage(['req_1', 'req_2'])).toEqual([]);
      expect(await usage.deleteUsage([])).toEqual([]);
      expect(ids(await usage.page({ organization_id: null }, 9, undefined))).toEqual(['req_3']);
    });

    test('the charges of a day are added to what is there, at the place of the newest', async () => {
      const day = { organization_id: 'org_a', project_id: 'proj_a', day: '2026-05-05' };
      const other_day = { ...day, day: '2026-05-06', charges: 1 };
      await usage.addLedgerDays([
        { ...day, last_entry_id: 9, charges: 2, charged_micros: 2 ** 50 },
        { ...other_day, last_entry_id: 11, charged_micros: 7 },
      ]);
      await usage.addLedgerDays([
        { ...other_day, last_entry_id: 13, charged_micros: 0 },
        { ...day, last_entry_id: 5, charges: 3, charged_micros: 1 },
      ]);
      await usage.addLedgerDays([]);
      expect(
        await usage.chargedOnDays_micros([
          { ...day, day: '2026-05-07' },
          other_day,
          { ...day, project_id: 'proj_b' },
          day,
        ]),
      ).toEqual([0, 7, 0, 2 ** 50 + 1]);
      expect(await usage.chargedOnDays_micros([])).toEqual([]);
      const asked = { organization_id: 'org_a', charges_by: 'request', limit: 9 } as const;
      const { items } = await database.movements.movementLines(asked);
      expect(items.map(({ entry_id, charges, amount_micros }) => [entry_id, charges, amount_micros])).toEqual(
        [
          [13, 2, -7],
          [9, 5, -(2 ** 50) - 1],
        ],
      );
    });

    test('the usage of a day is added to what is there of the same group', async () => {
      await usage.addUsageDays([
        usageDay(),
        usageDay({ mode: 'consistent', cost_micros: 100 }),
        usageDay({ ...FAILED, requests: 8 }),
        usageDay({ ...OTHER_PROJECT, cost_micros: 1_000 }),
      ]);
      await usage.addUsageDays([
        usageDay({ requests: 1, questions: 1, input_tokens: 2 ** 50, cost_micros: 5 }),
      ]);
      await usage.addUsageDays([]);
      const fast = { organization_id: 'org_a', project_id: 'proj_a', mode: 'fast' } as const;
      expect(await usage.totalsOfDay('2026-05-05', fast)).toMatchObject([
        { status: 200, requests: 4, questions: 7, input_tokens: 2 ** 50 + 90, cost_micros: 17 },
        { status: 502, requests: 8, questions: 0, cost_micros: 0 },
      ]);
      const day = { organization_id: 'org_a', project_id: 'proj_a', day: '2026-05-05' };
      expect(
        await usage.costOfDays_micros([
          { ...day, day: '2026-05-06' },
          day,
          { ...day, organization_id: 'org_b' },
        ]),
      ).toEqual([0, 117, 0]);
      expect(await usage.costOfDays_micros([])).toEqual([]);
    });
  });
});
