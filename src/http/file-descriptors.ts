import { readdirSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/**
 * Descriptors that no connection may take. They are for the database's files, the audit's own connection, a model that
 * is loaded again, and requests to the payment provider.
 */
const RESERVE = 64;
/** Below this the service would serve nobody, so the reserve gives way. */
const CONNECTIONS_MIN = 16;
/** The limit to assume where it cannot be read: systems give at least this many. */
const ASSUMED_LIMIT = 256;

/** With fewer, not even the program and its model can be loaded beside some connections. */
export const DESCRIPTORS_MIN = 128;

const Report = Type.Object({
  userLimits: Type.Object({ open_files: Type.Object({ soft: Type.Number() }) }),
});

/**
 * How many connections this process can have open beside the files that it has open now and the reserve. Call it when
 * everything else is open. Bun raises the soft limit to the hard one when it starts.
 */
export function connectionsThatFit(): number {
  return Math.max(CONNECTIONS_MIN, descriptorLimit() - openDescriptors() - RESERVE);
}

/** How many files this process may have open. */
export function descriptorLimit(): number {
  const report: unknown = process.report?.getReport();
  return Value.Check(Report, report) ? report.userLimits.open_files.soft : ASSUMED_LIMIT;
}

/** An image without a shell may have no `/dev/fd`, which is a link to the other on Linux. */
const OPEN_FILES = process.platform === 'linux' ? '/proc/self/fd' : '/dev/fd';

/** How many files this process has open. */
export function openDescriptors(): number {
  return readdirSync(OPEN_FILES).length;
}
