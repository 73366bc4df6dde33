/** Limits of connections that a test can wait for; a busy machine has a second for a handshake and a head. */
export const TIMEOUTS = { idle_ms: 200, head_ms: 1_000, request_ms: 1_500, response_ms: 2_000, check_ms: 50 };
