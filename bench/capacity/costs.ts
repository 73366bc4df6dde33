/** CPU times at points that were measured, and on the straight lines between them. */
export type Curve = readonly (readonly [count: number, duration_ms: number])[];

/** The curve's value; behind its last point it goes on as before it. */
export function valueAt(curve: Curve, count: number): number {
  const after = curve.findIndex(([at]) => at >= count);
  const right = after === -1 ? curve.length - 1 : Math.max(after, 1);
  const [from, from_ms] = curve[right - 1] ?? [0, 0];
  const [to, to_ms] = curve[right] ?? [1, 0];
  return from_ms + ((to_ms - from_ms) * (count - from)) / (to - from);
}

/** What a database server and a node compute. All of it was measured; `bench/capacity.md` says where. */
export const COSTS = {
  /** PostgreSQL, for a transaction of the ledger with so many writes, without `ledger_organization_ms`. */
  ledger_writes_ms: [
    [1, 0.615],
    [16, 1.775],
    [64, 3.792],
    [256, 9.762],
  ] satisfies Curve,
  /** PostgreSQL, for each organization in that transaction. */
  ledger_organization_ms: 0.025,
  /** A node, for such a transaction. */
  node_writes_ms: [
    [1, 0.45],
    [16, 0.87],
    [64, 1.38],
    [256, 2.97],
  ] satisfies Curve,
  /** PostgreSQL, for a statement of the rate windows; for each organization in it; for each request or settlement. */
  windows_statement_ms: 0.15,
  windows_organization_ms: 0.038,
  windows_request_ms: 0.012,
  /** PostgreSQL, for taking an entry out of a window; an organization has one of each statement that asks for it. */
  windows_expiry_ms: 0.1,
  /** PostgreSQL, for looking up a key, and for reading the model from the catalog. */
  key_lookup_ms: 0.033,
  catalog_read_ms: 0.02,
} as const;

/**
 * How the CPU time of a transaction is spread over it: until the first lock is asked for, then until the first answer is
 * sent, then until the commit. Assumed from the numbers of statements; not measured.
 */
export const LEDGER_PARTS = { before_locks: 0.1, reads: 0.4, writes: 0.5 } as const;

/** How much of a statement of the rate windows comes before its locks. Assumed. */
export const WINDOWS_BEFORE_LOCKS = 0.3;

/** Where the database runs. */
export interface Machine {
  readonly cores: number;
  /** Between a node and the database, both ways. */
  readonly round_trip_ms: number;
  /** Of the write-ahead log to the disk. */
  readonly flush_ms: number;
  /** Of a synchronous standby; null without one. */
  readonly standby: { readonly round_trip_ms: number; readonly flush_ms: number } | null;
  /** Connections of a pooler to the server that transactions share; null without a pooler. */
  readonly pooled_connections: number | null;
  /** The cores of the machine compute for the nodes, too. */
  readonly is_shared_with_nodes: boolean;
}

/** A database server as a cloud has them: assumed, not measured. */
export const ASSUMED_MACHINE: Machine = {
  cores: 32,
  round_trip_ms: 0.3,
  flush_ms: 0.5,
  standby: { round_trip_ms: 0.6, flush_ms: 0.5 },
  pooled_connections: null,
  is_shared_with_nodes: false,
};

/** The machine of the measurements: two cores for nodes and server, loopback, `fdatasync` of 1.3 ms. */
export const MEASURED_MACHINE: Machine = {
  cores: 2,
  round_trip_ms: 0,
  flush_ms: 1.3,
  standby: null,
  pooled_connections: null,
  is_shared_with_nodes: true,
};
