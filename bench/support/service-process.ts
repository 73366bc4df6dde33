import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The output of a benched service once it listens. */
export interface ServiceAddress {
  readonly address: string;
  readonly key: string;
  /** The address of its metrics; null for none. */
  readonly metrics_url: string | null;
}

/** A service in its own process, so that the load does not share its event loop. */
export interface ServiceProcess extends ServiceAddress {
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts `service-child.ts` with an engine that computes (`real`) or answers at once (`instant`). */
export async function startServiceProcess(
  engine: 'real' | 'instant',
  threads: number,
  watching: 'watched' | 'unwatched' = 'unwatched',
): Promise<ServiceProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'tds-bench-'));
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, 'service-child.ts'),
      engine,
      String(threads),
      directory,
      watching,
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  );
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const address: ServiceAddress = JSON.parse(new TextDecoder().decode(value));
  return {
    ...address,
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM');
      await child.exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
