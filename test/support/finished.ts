/** The result of a finished program. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Resolves with all that a program printed, once it has ended. */
export async function finished(
  child: Bun.Subprocess<Bun.SpawnOptions.Writable, 'pipe', 'pipe'>,
): Promise<Finished> {
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}
