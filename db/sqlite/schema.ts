import * as tables from '../tables.ts';
import { sqliteTableOf } from './sqlite-table.ts';

/**
 * All tables of the service in SQLite's dialect, for its migrations and its prepared statements. The migrations make
 * every table STRICT, so an INTEGER column accepts integers only. `db/tables.ts` says what the columns mean.
 */
export const users = sqliteTableOf(tables.users);
export const organizations = sqliteTableOf(tables.organizations);
export const members = sqliteTableOf(tables.members);
export const projects = sqliteTableOf(tables.projects);
export const projectMonths = sqliteTableOf(tables.projectMonths);
export const apiKeys = sqliteTableOf(tables.apiKeys);
export const payments = sqliteTableOf(tables.payments);
export const ledgerEntries = sqliteTableOf(tables.ledgerEntries);
export const idempotentRequests = sqliteTableOf(tables.idempotentRequests);
export const tierChanges = sqliteTableOf(tables.tierChanges);
export const alerts = sqliteTableOf(tables.alerts);
export const alertRecipients = sqliteTableOf(tables.alertRecipients);
export const usageRecords = sqliteTableOf(tables.usageRecords);
export const ledgerDays = sqliteTableOf(tables.ledgerDays);
export const usageDays = sqliteTableOf(tables.usageDays);
export const auditCheckpoints = sqliteTableOf(tables.auditCheckpoints);
export const auditedOrganizations = sqliteTableOf(tables.auditedOrganizations);
export const auditedProjectMonths = sqliteTableOf(tables.auditedProjectMonths);
export const models = sqliteTableOf(tables.models);
export const modelTunings = sqliteTableOf(tables.modelTunings);
export const answerCounts = sqliteTableOf(tables.answerCounts);
export const modelAliases = sqliteTableOf(tables.modelAliases);
export const paymentEvents = sqliteTableOf(tables.paymentEvents);
export const programVersions = sqliteTableOf(tables.programVersions);
export const sessions = sqliteTableOf(tables.sessions);
export const signInAccounts = sqliteTableOf(tables.signInAccounts);
export const secondFactors = sqliteTableOf(tables.secondFactors);
export const passkeys = sqliteTableOf(tables.passkeys);
export const verifications = sqliteTableOf(tables.verifications);
export const invitations = sqliteTableOf(tables.invitations);
export const auditLogEntries = sqliteTableOf(tables.auditLogEntries);
