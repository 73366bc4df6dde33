/** An error, what caused it, what caused that, and so on: libraries wrap the error that says what happened. */
export function* withCauses(error: unknown): Generator<unknown, void> {
  for (let one = error; one !== undefined; one = one instanceof Error ? one.cause : undefined) yield one;
}
