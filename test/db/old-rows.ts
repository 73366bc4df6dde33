/** The time of the rows. */
const AT_MS = Date.UTC(2026, 5, 15);

/** Rows that all versions write alike: a payment, a charged request, and an open one. */
export const OLD_ROWS = [
  `INSERT INTO organizations (id, name, tier, credit_micros, held_micros, open_holds, paid_micros, first_paid_at_ms, created_at_ms)
    VALUES ('org_1', 'Old', 1, 24999993, 20, 1, 25000000, ${AT_MS}, ${AT_MS})`,
  `INSERT INTO projects (id, organization_id, name, created_at_ms) VALUES ('proj_1', 'org_1', 'Default', ${AT_MS})`,
  `INSERT INTO api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms)
    VALUES ('key_1', 'proj_1', 'Old key', 'aa', 'sk_svc_old', ${AT_MS})`,
  `INSERT INTO payments (id, organization_id, provider, external_id, kind, amount_micros, status, created_at_ms, settled_at_ms)
    VALUES ('pay_1', 'org_1', 'manual', 'pay_1', 'top_up', 25000000, 'completed', ${AT_MS}, ${AT_MS})`,
  `INSERT INTO ledger_entries (id, organization_id, project_id, kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id, month, payment_id, created_at_ms)
    VALUES (1, 'org_1', NULL, 'top_up', 25000000, 0, NULL, NULL, NULL, 'pay_1', ${AT_MS}),
      (2, 'org_1', 'proj_1', 'hold', 0, 20, NULL, 'req_1', '2026-06', NULL, ${AT_MS}),
      (3, 'org_1', 'proj_1', 'charge', -7, -20, 2, NULL, '2026-06', NULL, ${AT_MS}),
      (4, 'org_1', 'proj_1', 'hold', 0, 20, NULL, 'req_2', '2026-06', NULL, ${AT_MS})`,
  "INSERT INTO project_months (project_id, month, spent_micros, held_micros) VALUES ('proj_1', '2026-06', 7, 20)",
  `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status, questions, input_tokens, cost_micros, latency_ms)
    VALUES ('req_1', ${AT_MS}, 'org_1', 'proj_1', 'key_1', 'decision-1', 'fast', '/v1/decisions', 200, 1, 70, 7, 1.5)`,
];

/** The migrations of the first version that counted by key, and of the last that kept no row for a whole project. */
export const COUNTED_BY_KEY = { first: 4, last: 6 } as const;

/** Makes the charged request of `OLD_ROWS` one that such a version counted for its key alone, with two of an earlier month. */
export const COUNT_BY_KEY = [
  "UPDATE ledger_entries SET api_key_id = 'key_1' WHERE id IN (2, 3)",
  'UPDATE project_months SET spent_micros = 0',
  'UPDATE organizations SET credit_micros = credit_micros - 5',
  `INSERT INTO ledger_entries (id, organization_id, project_id, api_key_id, kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id, month, created_at_ms)
    VALUES (5, 'org_1', 'proj_1', 'key_1', 'hold', 0, 20, NULL, 'req_3', '2026-05', ${AT_MS}),
      (6, 'org_1', 'proj_1', 'key_1', 'charge', -3, -20, 5, NULL, '2026-05', ${AT_MS}),
      (7, 'org_1', 'proj_1', 'key_2', 'hold', 0, 20, NULL, 'req_4', '2026-05', ${AT_MS}),
      (8, 'org_1', 'proj_1', 'key_2', 'charge', -2, -20, 7, NULL, '2026-05', ${AT_MS})`,
  `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status, questions, input_tokens, cost_micros, latency_ms)
    VALUES ('req_3', ${AT_MS}, 'org_1', 'proj_1', 'key_1', 'decision-1', 'fast', '/v1/decisions', 200, 1, 70, 3, 1.5),
      ('req_4', ${AT_MS}, 'org_1', 'proj_1', 'key_1', 'decision-1', 'fast', '/v1/decisions', 200, 1, 70, 2, 1.5)`,
  `INSERT INTO project_months (project_id, month, api_key_id, spent_micros, held_micros)
    VALUES ('proj_1', '2026-06', 'key_1', 7, 0), ('proj_1', '2026-05', 'key_1', 3, 0), ('proj_1', '2026-05', 'key_2', 2, 0)`,
];

/** The months of those rows in this version: of the whole project, and of each key. */
export const MONTHS_BY_KEY = [
  { project_id: 'proj_1', month: '2026-05', spent_micros: 5, held_micros: 0, api_key_id: '' },
  { project_id: 'proj_1', month: '2026-05', spent_micros: 3, held_micros: 0, api_key_id: 'key_1' },
  { project_id: 'proj_1', month: '2026-05', spent_micros: 2, held_micros: 0, api_key_id: 'key_2' },
  { project_id: 'proj_1', month: '2026-06', spent_micros: 7, held_micros: 20, api_key_id: '' },
  { project_id: 'proj_1', month: '2026-06', spent_micros: 7, held_micros: 0, api_key_id: 'key_1' },
];
