const POLL_MS = 2;
const DEADLINE_MS = 100_000;

/**
 * Resolves once the condition holds. Rejects with the condition's text after the deadline, so that a failed wait names
 * its condition before the runner's timeout.
 */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  deadline_ms = DEADLINE_MS,
  message = `This did not come true within ${deadline_ms} ms: ${isSo}`,
): Promise<void> {
  const end_ms = performance.now() + deadline_ms;
  while (!(await isSo())) {
    if (performance.now() > end_ms) throw new Error(message);
    await Bun.sleep(POLL_MS);
  }
}
