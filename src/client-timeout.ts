/** How long a client waits for an answer before it gives up (contract: a client's timeout is 120 seconds). */
export const CLIENT_TIMEOUT_MS = 120_000;
