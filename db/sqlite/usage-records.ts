import type { ProjectDay } from '../../src/store/roll-up-records.ts';
import type { DayTotal, UsageRecords, UsageScope } from '../../src/store/usage-records.ts';
import { endOfDay_ms, startOfDay_ms } from '../../src/time/days.ts';
import { SqlUsageRecords } from '../records/usage-records.ts';
import type { Db } from './connection.ts';
import { executorThrough } from './executor.ts';
import type { Access } from './transactions.ts';
import { conditionsOf, type UsageValues, valuesOf } from './usage-conditions.ts';

/** The usage in SQLite. */
export class SqliteUsageRecords extends SqlUsageRecords implements UsageRecords {
  readonly #db: Db;
  readonly #access: Access;

  constructor(db: Db, access: Access, executor = executorThrough(db.$client, access)) {
    super(executor);
    this.#db = db;
    this.#access = access;
  }

  totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]> {
    return this.#access.read(() =>
      this.#db.$client
        .query<DayTotal, UsageValues>(
          `SELECT organizations.name AS organization, projects.name AS project, api_keys.name AS api_key, model, mode,
          endpoint, status, sum(requests) AS requests, sum(questions) AS questions, sum(input_tokens) AS input_tokens,
          sum(cost_micros) AS cost_micros
        FROM (
          -- CROSS JOIN: by the key, which begins with the organization.
          SELECT organization_id, project_id, api_key_id, model, mode, endpoint, status, requests, questions,
            input_tokens, cost_micros
          FROM organizations CROSS JOIN usage_days ON organization_id = organizations.id AND day = $day
          WHERE ${conditionsOf(scope)}
          UNION ALL
          SELECT organization_id, project_id, api_key_id, model, mode, endpoint, status, 1, questions, input_tokens,
            cost_micros
          FROM usage_records WHERE time_ms BETWEEN $start_ms AND $end_ms AND ${conditionsOf(scope)}) AS usage
        JOIN organizations ON organizations.id = usage.organization_id
        JOIN projects ON projects.id = usage.project_id
        JOIN api_keys ON api_keys.id = usage.api_key_id
        GROUP BY usage.organization_id, usage.project_id, usage.api_key_id, model, mode, endpoint, status
        ORDER BY organization, project, api_key, model, mode, endpoint, status`,
        )
        .all({ ...valuesOf(scope), day, start_ms: startOfDay_ms(day), end_ms: endOfDay_ms(day) }),
    );
  }

  chargedOnDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.#access.read(() => {
      const charged = this.#db.$client.query<{ charged_micros: number }, [string, string]>(
        'SELECT charged_micros FROM ledger_days WHERE project_id = ? AND day = ?',
      );
      return days.map(({ project_id, day }) => charged.get(project_id, day)?.charged_micros ?? 0);
    });
  }

  costOfDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.#access.read(() => {
      const cost = this.#db.$client.query<{ cost_micros: number }, [string, string, string]>(
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
