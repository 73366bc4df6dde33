import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { t } from 'elysia';
import type { Role } from '../../accounts/roles.ts';
import type { Mode } from '../../questions/question.ts';
import { TIME_MAX_MS } from '../../usage/buckets.ts';

/** An id as this service makes them. */
export const Id = Type.String({ minLength: 1, maxLength: 64 });

/** An id that the page draws for one entry, which is known by it when it is sent again. No payment has such an id. */
export const EntryId = Type.String({ pattern: '^entry_[0-9A-Za-z_-]{16,64}$' });

/** A name that a person gives; the rules check it exactly. */
export const Name = Type.String({ maxLength: 1_000 });

/** An address as a person types it; the rules check it exactly. */
export const Email = Type.String({ maxLength: 1_000 });

/** A password as a person types it; sign-in bounds it exactly. */
export const Password = Type.String({ maxLength: 1_000 });

/** What a mailed link carries. */
export const Token = Type.String({ minLength: 1, maxLength: 1_000 });

/**
 * A whole number in a query, where everything is text; in a body `Type.Integer` takes no text. It is one that a column
 * of either database can have.
 */
export function queryInteger(bounds: { readonly minimum?: number; readonly maximum?: number } = {}) {
  return t.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, ...bounds });
}

/** A time in a query, in Unix milliseconds, whose UTC day can be written. */
export const queryTime = () => queryInteger({ minimum: 0, maximum: TIME_MAX_MS });

/** Unix milliseconds. */
export const Time = Type.Integer();

/** Integer micro-dollars. */
export const Micros = Type.Integer();

/** The path of everything that belongs to one organization. */
export const OrganizationParams = Type.Object({ organization_id: Id });

/** An answer with these fields and no others, so that nothing leaves by accident. */
export function answerOf<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** The schema, or null. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** The answer of a change that has nothing to tell. */
export const Done = answerOf({ done: Type.Literal(true) });

/** How a record is read. */
export const ModeSchema = Type.Union([Type.Literal('fast'), Type.Literal('consistent')]) satisfies TSchema & {
  readonly static: Mode;
};

/** What a member is in an organization. */
export const RoleSchema = Type.Union([
  Type.Literal('owner'),
  Type.Literal('admin'),
  Type.Literal('developer'),
  Type.Literal('billing'),
  Type.Literal('reader'),
]) satisfies TSchema & { readonly static: Role };
