import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { t } from 'elysia';
import { ENTRY_ID } from '../../contract/identifiers.ts';
import { ROLES } from '../../contract/roles.ts';
import { oneOf } from '../../json/one-of.ts';
import { MODES } from '../../questions/question.ts';
import { TIME_MAX_MS } from '../../time/days.ts';

/** An id of this service. */
export const Id = Type.String({ minLength: 1, maxLength: 64 });

/**
 * The id that a page draws for one entry, which identifies it when it is sent again. No payment has such an
 * id.
 */
export const EntryId = Type.String({ pattern: ENTRY_ID.source });

/** A person's input for a name; the rules check it exactly. */
export const Name = Type.String({ maxLength: 1_000 });

/** A person's input for an address; the rules check it exactly. */
export const Email = Type.String({ maxLength: 1_000 });

/** A person's input for a password; sign-in bounds it exactly. */
export const Password = Type.String({ maxLength: 1_000 });

/** A code of an authenticator app, or a recovery code. */
export const Code = Type.String({ minLength: 1, maxLength: 100 });

/** The token of a mailed link. */
export const Token = Type.String({ minLength: 1, maxLength: 1_000 });

/**
 * Returns the schema of a whole number in a query, where everything is text; in a body `Type.Integer` accepts
 * no text. Its range fits a column of either database.
 */
export function queryInteger(bounds: { readonly minimum?: number; readonly maximum?: number } = {}) {
  return t.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, ...bounds });
}

/** Returns the schema of a time in a query, in Unix milliseconds, within the range of dates. */
export const queryTime = () => queryInteger({ minimum: 0, maximum: TIME_MAX_MS });

/** Unix milliseconds. */
export const Time = Type.Integer();

/** Integer micro-dollars. */
export const Micros = Type.Integer();

/** The path of the resources of one organization. */
export const OrganizationParams = Type.Object({ organization_id: Id });

/** Returns the schema of a response with exactly these fields, so that no other leaks by accident. */
export function answerOf<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Returns the fields of a row that a response has, without all others of the row. */
export function only<Answer extends object>(
  { properties }: TObject & { readonly static: Answer },
  row: NoInfer<Answer>,
): Answer {
  const answer = { ...row };
  for (const field in answer) if (!(field in properties)) delete answer[field];
  return answer;
}

/** Returns the schema of a list in a response. Its type is readonly, so that no list is copied to be sent. */
export function listOf<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<readonly Static<Schema>[]>(Type.Array(schema));
}

/** Returns the schema of a value or null. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** The response to a change without a result. */
export const Done = answerOf({ done: Type.Literal(true) });

/** Resolves with that response once the change is made. */
export async function done(change: Promise<unknown>): Promise<Static<typeof Done>> {
  await change;
  return { done: true };
}

/** The mode of reading a record. */
export const ModeSchema = oneOf(MODES);

/** The role of a member in an organization. */
export const RoleSchema = oneOf(ROLES);
