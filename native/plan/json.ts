/** Any value that JSON can carry: what a client may send as a record, as instructions or as a description. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
