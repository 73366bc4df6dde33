/**
 * Yields an error, its cause, the cause of that, and so on. Libraries wrap the error that has the useful
 * message.
 */
export function* withCauses(error: unknown): Generator<unknown, void> {
  for (let one = error; one !== undefined; one = one instanceof Error ? one.cause : undefined) yield one;
}
