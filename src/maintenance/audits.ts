import type { Actor } from '../access/actor.ts';
import { requireOperator } from '../access/permissions.ts';
import type { Log } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import type { HistoryReport, HistoryRuns, HistoryTask } from '../store/history-runs.ts';
import type { Clock } from '../time/clock.ts';

interface AuditReporting {
  readonly clock: Clock;
  readonly log: Pick<Log, 'error'>;
  readonly metrics: Pick<Metrics, 'audited'>;
}

/** Counts the violations of an audit, and writes each failed check to the log. */
export function reportAudit(
  { clock, log, metrics }: AuditReporting,
  { checks }: HistoryReport['audit'],
): void {
  const violations = checks.reduce((sum, check) => sum + check.violations.length, 0);
  metrics.audited(violations, clock.now_ms());
  for (const check of checks.filter((one) => one.violations.length > 0)) {
    log.error('the audit found a violation: run "tds audit"', {
      check: check.name,
      violations: check.violations.length,
    });
  }
}

/** The result of one audit of the books. */
export interface AuditResult {
  readonly started_at_ms: number;
  readonly ended_at_ms: number;
  /** `failed` when the audit itself could not be done: the cause is among the problems. */
  readonly outcome: 'ok' | 'violations' | 'failed';
  /** True if it was to read everything from the first entry on. */
  readonly whole: boolean;
  /** The number of each check's violations, at most 100; empty when the audit failed. */
  readonly checks: readonly { readonly name: string; readonly violations: number }[];
  /** The number of old requests that were then rolled up into daily totals. */
  readonly requests_rolled_up: number;
}

/**
 * The runs over the history, with the result of the last one. Its methods for the operator reject everyone
 * else.
 */
export class Audits implements HistoryRuns {
  #last: AuditResult | null = null;
  #running_since_ms: number | undefined;

  constructor(
    private readonly runs: HistoryRuns,
    private readonly parts: AuditReporting & { readonly problems: Pick<Problems, 'report'> },
  ) {}

  async run(task: HistoryTask): Promise<HistoryReport | null> {
    if (this.#running_since_ms !== undefined) return null;
    const { clock } = this.parts;
    const started = { started_at_ms: clock.now_ms(), whole: task.whole === true };
    this.#running_since_ms = started.started_at_ms;
    try {
      const report = await this.runs.run(task);
      if (report === null) return null;
      this.#last = {
        ...started,
        ended_at_ms: clock.now_ms(),
        outcome: report.audit.ok ? 'ok' : 'violations',
        checks: report.audit.checks.map(({ name, violations }) => ({ name, violations: violations.length })),
        requests_rolled_up: report.requests_rolled_up,
      };
      return report;
    } catch (error) {
      const ended_at_ms = clock.now_ms();
      this.#last = { ...started, ended_at_ms, outcome: 'failed', checks: [], requests_rolled_up: 0 };
      throw error;
    } finally {
      this.#running_since_ms = undefined;
    }
  }

  stop(): void {
    this.runs.stop();
  }

  /** Returns the last audit since the start, and the start of a running one. Throws `permission_denied`. */
  status(actor: Actor): {
    readonly last: AuditResult | null;
    readonly is_running: boolean;
    readonly running_since_ms?: number | undefined;
  } {
    requireOperator(actor);
    const running_since_ms = this.#running_since_ms;
    return { last: this.#last, is_running: running_since_ms !== undefined, running_since_ms };
  }

  /**
   * Audits the books from the first entry on, outside of the event loop. Resolves with the result, or null
   * while another audit runs. A failure of the audit itself is reported, and is in its result. Rejects with
   * `permission_denied`.
   */
  async auditNow(actor: Actor): Promise<AuditResult | null> {
    requireOperator(actor);
    const { clock, problems } = this.parts;
    try {
      const report = await this.run({ now_ms: clock.now_ms(), prune_before_ms: null, whole: true });
      if (report === null) return null;
      reportAudit(this.parts, report.audit);
    } catch (error) {
      problems.report(inBackground('audit', error));
    }
    return this.#last;
  }
}
