import type { JsonObject, JsonValue } from './json-value.ts';

/**
 * A type of the wire as the service makes it: maps from a client's names as `JsonObject`, and any value as
 * `JsonValue`.
 */
export type Written<Wire> = unknown extends Wire
  ? JsonValue
  : Wire extends object
    ? string extends keyof Wire
      ? JsonObject<Written<Wire[keyof Wire]>>
      : { readonly [Name in keyof Wire]: Written<Wire[Name]> }
    : Wire;
