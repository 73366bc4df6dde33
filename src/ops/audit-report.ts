/** A row that breaks a guarantee: its ids and amounts, as the check's query names them. */
export type Violation = Readonly<Record<string, string | number | null>>;

export interface AuditCheck {
  readonly name: string;
  /** What holds in a sound database. */
  readonly guarantee: string;
  /** The rows that break it, at most 100 of them. */
  readonly violations: readonly Violation[];
}

export interface AuditReport {
  readonly ok: boolean;
  /** The last ledger entry that an earlier audit had checked, so that this one went on behind it; 0 for none. */
  readonly after_entry_id: number;
  readonly checks: readonly AuditCheck[];
  /** What somebody should look at, though the books are right. */
  readonly warnings: readonly AuditCheck[];
  /** Holds that have no end: requests that are being served, or what an unclean stop left to the next start. */
  readonly open_holds: number;
}

/** The report on a database whose files are damaged: nothing else is checked there. */
export function damagedReport(file: AuditCheck): AuditReport {
  return { ok: false, after_entry_id: 0, checks: [file], warnings: [], open_holds: 0 };
}

/** The checks that found something. */
export function failedChecks(checks: readonly AuditCheck[]): readonly AuditCheck[] {
  return checks.filter(({ violations }) => violations.length > 0);
}

/** The report as text for a person: one line a check, and one a violation. */
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
    report.ok ? 'The audit is clean.' : 'The audit FAILED.',
  ].join('\n');
}
