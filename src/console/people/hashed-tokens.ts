import { createHash } from 'node:crypto';
import type { DBAdapter, DBTransactionAdapter, Where } from 'better-auth';

const MODEL = 'session';
const FIELD = 'token';

/**
 * Returns the adapter with a session's token replaced by its SHA-256 in everything that reaches the database.
 * better-auth stores the token itself, with which a reader of a backup could sign in. A row that was found by
 * its token, or just created, has the token again; one of a list has the hash.
 */
export function withHashedTokens(adapter: DBAdapter): DBAdapter {
  return {
    ...hashing(adapter),
    transaction: (work) => adapter.transaction((inside) => work(hashing(inside))),
  };
}

function hashing<Adapter extends DBTransactionAdapter>(adapter: Adapter): Adapter {
  return {
    ...adapter,
    async create<Row extends Record<string, unknown>, Made = Row>(
      given: Parameters<typeof adapter.create<Row, Made>>[0],
    ) {
      const token = given.model === MODEL ? tokenIn(given.data) : undefined;
      if (token === undefined) return await adapter.create<Row, Made>(given);
      const made = await adapter.create<Row, Made>({
        ...given,
        data: { ...given.data, [FIELD]: hash(token) },
      });
      return { ...made, [FIELD]: token };
    },
    async findOne<Row>(given: Parameters<typeof adapter.findOne>[0]) {
      return restored(await adapter.findOne<Row>(hashedWhere(given)), given);
    },
    findMany: <Row>(given: Parameters<typeof adapter.findMany>[0]) =>
      adapter.findMany<Row>(hashedWhere(given)),
    count: (given) => adapter.count(hashedWhere(given)),
    async update<Row>(given: Parameters<typeof adapter.update>[0]) {
      return restored(await adapter.update<Row>(hashedUpdate(hashedWhere(given))), given);
    },
    updateMany: (given) => adapter.updateMany(hashedUpdate(hashedWhere(given))),
    delete: (given) => adapter.delete(hashedWhere(given)),
    deleteMany: (given) => adapter.deleteMany(hashedWhere(given)),
    async consumeOne<Row>(given: Parameters<typeof adapter.consumeOne>[0]) {
      return restored(await adapter.consumeOne<Row>(hashedWhere(given)), given);
    },
    async incrementOne<Row>(given: Parameters<typeof adapter.incrementOne>[0]) {
      return restored(await adapter.incrementOne<Row>(hashedWhere(given)), given);
    },
  };
}

/** Returns the conditions with the database's values. */
function hashedWhere<Given extends { readonly model: string; where?: Where[] | undefined }>(
  given: Given,
): Given {
  if (given.model !== MODEL || given.where === undefined) return given;
  return {
    ...given,
    where: given.where.map((condition) =>
      condition.field === FIELD ? { ...condition, value: hashedValue(condition.value) } : condition,
    ),
  };
}

function hashedValue(value: Where['value']): Where['value'] {
  if (typeof value === 'string') return hash(value);
  if (!Array.isArray(value)) return value;
  return value.map((one) => hash(String(one)));
}

function hashedUpdate<Given extends { readonly model: string; update: Record<string, unknown> }>(
  given: Given,
): Given {
  const token = given.model === MODEL ? tokenIn(given.update) : undefined;
  return token === undefined ? given : { ...given, update: { ...given.update, [FIELD]: hash(token) } };
}

/** Returns the row with the token by which it was found. */
function restored<Row>(row: Row | null, { model, where }: { model: string; where: Where[] }): Row | null {
  const token = where.find(({ field }) => field === FIELD)?.value;
  return row === null || model !== MODEL || typeof token !== 'string' ? row : { ...row, [FIELD]: token };
}

function tokenIn(data: object): string | undefined {
  return FIELD in data && typeof data[FIELD] === 'string' ? data[FIELD] : undefined;
}

function hash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
