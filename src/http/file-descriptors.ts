import { readdirSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/**
 * Descriptors that no connection may use. They are for the database's files, the audit's own connection, a
 * model that is loaded again, and requests to the payment provider.
 */
const RESERVE = 64;
/** The fewest connections; below it the service would be useless, so the reserve gives way. */
const CONNECTIONS_MIN = 16;
/** The limit to assume where it cannot be read: systems give at least this many. */
const ASSUMED_LIMIT = 256;

/** With fewer descriptors, the program and its model cannot be loaded beside some connections. */
export const DESCRIPTORS_MIN = 128;

const Report = Type.Object({
  userLimits: Type.Object({ open_files: Type.Object({ soft: Type.Number() }) }),
});

/**
 * Returns the number of connections that fit beside the presently open files and the reserve. Call it when
 * everything else is open. Bun raises the soft limit to the hard one when it starts.
 */
export function connectionsThatFit(): number {
  return Math.max(CONNECTIONS_MIN, descriptorLimit() - openDescriptors() - RESERVE);
}

/** Returns the most files that this process may have open. */
export function descriptorLimit(): number {
  const report: unknown = process.report?.getReport();
  return Value.Check(Report, report) ? report.userLimits.open_files.soft : ASSUMED_LIMIT;
}

/** An image without a shell may have no `/dev/fd`, which is a link to the other on Linux. */
const OPEN_FILES = process.platform === 'linux' ? '/proc/self/fd' : '/dev/fd';

/** Returns the number of open files of this process. */
export function openDescriptors(): number {
  return readdirSync(OPEN_FILES).length;
}
