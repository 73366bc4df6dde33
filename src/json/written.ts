import type { JsonObject, JsonValue } from './json-value.ts';

/**
 * A wire type as the service builds it: maps with a client's names are `JsonObject`, and any value is
 * `JsonValue`.
 */
export type Written<Wire> = unknown extends Wire
  ? JsonValue
  : Wire extends object
    ? string extends keyof Wire
      ? JsonObject<Written<Wire[keyof Wire]>>
      : { readonly [Name in keyof Wire]: Written<Wire[Name]> }
    : Wire;
