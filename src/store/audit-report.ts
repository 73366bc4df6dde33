/** A row that violates a guarantee: its ids and amounts, as the check's query names them. */
export type Violation = Readonly<Record<string, string | number | null>>;

export interface AuditCheck {
  readonly name: string;
  /** The guarantee of a sound database. */
  readonly guarantee: string;
  /** The rows that violate it, at most 100. */
  readonly violations: readonly Violation[];
}

export interface AuditReport {
  readonly ok: boolean;
  /** The last ledger entry of an earlier audit, after which this one began; 0 for none. */
  readonly after_entry_id: number;
  readonly checks: readonly AuditCheck[];
  /** Findings for an operator, although the books are right. */
  readonly warnings: readonly AuditCheck[];
  /**
   * The number of holds without an end: of running requests, or left by an unclean stop for the next start.
   */
  readonly open_holds: number;
}

/** The next step after a violation, in a clause. */
export const VIOLATION_ADVICE = 'keep this database and its backups, and see Backups in OPERATIONS.md';

/** Returns the report on a database whose files are damaged; nothing else is checked there. */
export function damagedReport(file: AuditCheck): AuditReport {
  return { ok: false, after_entry_id: 0, checks: [file], warnings: [], open_holds: 0 };
}

/** Returns the checks with violations. */
export function failedChecks(checks: readonly AuditCheck[]): readonly AuditCheck[] {
  return checks.filter(({ violations }) => violations.length > 0);
}

/** Returns the report as text for a person: one line a check, and one a violation. */
export function formatAudit(report: AuditReport): string {
  const lines = report.checks.flatMap(({ name, guarantee, violations }) => [
    `${violations.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${guarantee}`,
    ...violations.map((violation) => `     ${JSON.stringify(violation)}`),
  ]);
  const warnings = report.warnings
    .filter(({ violations }) => violations.length > 0)
    .flatMap(({ name, guarantee, violations }) => [
      `warn ${name}: ${guarantee}`,
      ...violations.map((violation) => `     ${JSON.stringify(violation)}`),
    ]);
  return [
    ...lines,
    ...warnings,
    `${report.open_holds} open holds`,
    report.ok ? 'The audit is clean.' : `The audit FAILED: ${VIOLATION_ADVICE}.`,
  ].join('\n');
}
