import type { AuditLogDetail } from '../store/audit-log-records.ts';

/** Returns the values of a stored detail that an entry can have. Throws as `JSON.parse` does. */
export function readDetail(text: string): AuditLogDetail {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) return {};
  const detail: Record<string, AuditLogDetail[string]> = {};
  for (const [name, field] of Object.entries(value)) {
    if (field === null || ['string', 'number', 'boolean'].includes(typeof field)) detail[name] = field;
  }
  return detail;
}
