import type {
  DeletedEntry,
  DeletedUsage,
  EntryPair,
  LedgerDay,
  ProjectDay,
  RequestInLedger,
  RollUpRecords,
  UsageDay,
} from '../../src/store/roll-up-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

/** One row of a hold, its end and its usage. */
interface JoinedRow {
  readonly request_id: string;
  readonly hold_id: number;
  readonly hold_at_ms: number;
  readonly hold_organization_id: string;
  readonly hold_project_id: string | null;
  readonly hold_month: string | null;
  readonly hold_credit_delta_micros: number;
  readonly hold_held_delta_micros: number;
  readonly end_id: number | null;
  readonly end_kind: 'charge' | 'release';
  readonly end_at_ms: number;
  readonly end_organization_id: string;
  readonly end_project_id: string | null;
  readonly end_month: string | null;
  readonly end_credit_delta_micros: number;
  readonly end_held_delta_micros: number;
  readonly usage_time_ms: number | null;
  readonly usage_organization_id: string;
  readonly usage_project_id: string;
  readonly usage_status: number;
  readonly usage_cost_micros: number;
}

/** The last entry that the audit has checked. */
const CHECKED = '(SELECT last_entry_id FROM audit_checkpoints)';

const GROUP = 'organization_id, project_id, api_key_id, model, mode, endpoint, status';

/** Reads and writes the rows of the roll-up in SQLite. */
export class SqliteRollUpRecords implements RollUpRecords {
  constructor(
    protected readonly db: Db,
    protected readonly access: Access,
  ) {}

  requestsInLedger(after_entry_id: number, limit: number): Promise<readonly RequestInLedger[]> {
    return this.access.read(() =>
      this.db.$client
        .query<JoinedRow, { after_entry_id: number; limit: number }>(
          `SELECT hold.request_id, hold.id AS hold_id, hold.created_at_ms AS hold_at_ms,
          hold.organization_id AS hold_organization_id, hold.project_id AS hold_project_id, hold.month AS hold_month,
          hold.credit_delta_micros AS hold_credit_delta_micros, hold.held_delta_micros AS hold_held_delta_micros,
          ended.id AS end_id, ended.kind AS end_kind, ended.created_at_ms AS end_at_ms,
          ended.organization_id AS end_organization_id, ended.project_id AS end_project_id, ended.month AS end_month,
          ended.credit_delta_micros AS end_credit_delta_micros, ended.held_delta_micros AS end_held_delta_micros,
          usage.time_ms AS usage_time_ms, usage.organization_id AS usage_organization_id,
          usage.project_id AS usage_project_id, usage.status AS usage_status, usage.cost_micros AS usage_cost_micros
        FROM ledger_entries AS hold
        LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id AND ended.id <= ${CHECKED}
        LEFT JOIN usage_records AS usage ON usage.request_id = hold.request_id
        WHERE hold.id > $after_entry_id AND hold.id <= ${CHECKED} AND hold.kind = 'hold'
        ORDER BY hold.id LIMIT $limit`,
        )
        .all({ after_entry_id, limit })
        .map(requestOf),
    );
  }

  requestsOutsideLedger(
    from_ms: number,
    before_ms: number,
    limit: number,
  ): Promise<readonly Pick<UsageRow, 'request_id' | 'time_ms' | 'cost_micros'>[]> {
    return this.access.read(() =>
      this.db.$client
        .query<Pick<UsageRow, 'request_id' | 'time_ms' | 'cost_micros'>, Record<string, number>>(
          `SELECT request_id, time_ms, cost_micros FROM usage_records AS usage
        WHERE time_ms >= $from_ms AND time_ms < $before_ms
          AND NOT EXISTS (SELECT 1 FROM ledger_entries WHERE ledger_entries.request_id = usage.request_id)
        ORDER BY time_ms LIMIT $limit`,
        )
        .all({ from_ms, before_ms, limit }),
    );
  }

  deleteEntries(pairs: readonly EntryPair[]): Promise<readonly DeletedEntry[]> {
    return this.access.write(() => {
      const deletion = this.db.$client.query<DeletedEntry, [number, number]>(
        `DELETE FROM ledger_entries WHERE id IN (?, ?)
        RETURNING id AS entry_id, organization_id, project_id, kind, credit_delta_micros, held_delta_micros`,
      );
      return pairs.flatMap(({ hold_entry_id, end_entry_id }) => deletion.all(hold_entry_id, end_entry_id));
    });
  }

  deleteUsage(request_ids: readonly string[]): Promise<readonly DeletedUsage[]> {
    return this.access.write(() => {
      const deletion = this.db.$client.query<DeletedUsage, [string]>(
        `DELETE FROM usage_records WHERE request_id = ?
        RETURNING request_id, ${GROUP}, questions, input_tokens, cost_micros`,
      );
      return request_ids.flatMap((request_id) => deletion.all(request_id));
    });
  }

  addLedgerDays(days: readonly LedgerDay[]): Promise<void> {
    return this.access.write(() => {
      const addition = this.db.$client.query<never, Record<string, string | number>>(
        `INSERT INTO ledger_days (project_id, day, organization_id, last_entry_id, charges, charged_micros)
        VALUES ($project_id, $day, $organization_id, $last_entry_id, $charges, $charged_micros)
        ON CONFLICT DO UPDATE SET last_entry_id = max(last_entry_id, excluded.last_entry_id),
          charges = charges + excluded.charges, charged_micros = charged_micros + excluded.charged_micros`,
      );
      for (const day of days) addition.run({ ...day });
    });
  }

  addUsageDays(days: readonly UsageDay[]): Promise<void> {
    return this.access.write(() => {
      const addition = this.db.$client.query<never, Record<string, string | number>>(
        `INSERT INTO usage_days (day, ${GROUP}, requests, questions, input_tokens, cost_micros)
        VALUES ($day, $organization_id, $project_id, $api_key_id, $model, $mode, $endpoint, $status, $requests,
          $questions, $input_tokens, $cost_micros)
        ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
          questions = questions + excluded.questions, input_tokens = input_tokens + excluded.input_tokens,
          cost_micros = cost_micros + excluded.cost_micros`,
      );
      for (const day of days) addition.run({ ...day });
    });
  }

  chargedOnDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.access.read(() => {
      const charged = this.db.$client.query<{ charged_micros: number }, [string, string]>(
        'SELECT charged_micros FROM ledger_days WHERE project_id = ? AND day = ?',
      );
      return days.map(({ project_id, day }) => charged.get(project_id, day)?.charged_micros ?? 0);
    });
  }

  costOfDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.access.read(() => {
      const cost = this.db.$client.query<{ cost_micros: number }, [string, string, string]>(
        `SELECT coalesce(sum(cost_micros), 0) AS cost_micros FROM usage_days
        WHERE organization_id = ? AND project_id = ? AND day = ? AND status = 200`,
      );
      return days.map(
        ({ organization_id, project_id, day }) =>
          cost.get(organization_id, project_id, day)?.cost_micros ?? 0,
      );
    });
  }
}

function requestOf(row: JoinedRow): RequestInLedger {
  return {
    request_id: row.request_id,
    hold: {
      entry_id: row.hold_id,
      at_ms: row.hold_at_ms,
      organization_id: row.hold_organization_id,
      project_id: row.hold_project_id,
      month: row.hold_month,
      credit_delta_micros: row.hold_credit_delta_micros,
      held_delta_micros: row.hold_held_delta_micros,
    },
    end:
      row.end_id === null
        ? undefined
        : {
            entry_id: row.end_id,
            kind: row.end_kind,
            at_ms: row.end_at_ms,
            organization_id: row.end_organization_id,
            project_id: row.end_project_id,
            month: row.end_month,
            credit_delta_micros: row.end_credit_delta_micros,
            held_delta_micros: row.end_held_delta_micros,
          },
    usage:
      row.usage_time_ms === null
        ? undefined
        : {
            time_ms: row.usage_time_ms,
            organization_id: row.usage_organization_id,
            project_id: row.usage_project_id,
            status: row.usage_status,
            cost_micros: row.usage_cost_micros,
          },
  };
}
