/** The time after which a client gives up (contract: a client's timeout is 120 seconds). */
export const CLIENT_TIMEOUT_MS = 120_000;
