import type { usageDays, usageRecords } from './schema.ts';

/** Returns the columns by which usage is grouped within a day, and those that are summed, of either table. */
export function summedColumns<Table extends typeof usageRecords | typeof usageDays>(table: Table) {
  return {
    organization_id: table.organization_id,
    project_id: table.project_id,
    api_key_id: table.api_key_id,
    model: table.model,
    mode: table.mode,
    endpoint: table.endpoint,
    status: table.status,
    questions: table.questions,
    input_tokens: table.input_tokens,
    cost_micros: table.cost_micros,
  };
}
