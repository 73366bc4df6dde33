/** Limits of connections that a test can wait for. */
export const TIMEOUTS = { idle_ms: 200, head_ms: 300, request_ms: 600, response_ms: 1_000, check_ms: 50 };
