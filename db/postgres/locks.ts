/** Keys of PostgreSQL's advisory locks, which all nodes share. The nodes' own keys are random (`nodes.lock_key`). */

/** Held by the transaction that migrates the schema. */
export const MIGRATION_LOCK = 7_380_001;

/** Held by every transaction of the store, so that what it checks stays true until it has written. */
export const STORE_LOCK = 7_380_002;

/** Held while an audit writes its checkpoint. */
export const AUDIT_LOCK = 7_380_021;

/** Held by the node that audits and rolls up the history, on a connection of its own. */
export const HISTORY_LOCK = 7_380_022;
