import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from './postgres.ts';

/**
 * Stops all processes of a server without ending them, as a frozen machine does: connections stay open, and nothing is
 * answered. Returns what lets them go on.
 */
export function pausePostgres({ folder }: PostgresServer): () => void {
  const [first = ''] = readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n');
  // The postmaster first, so that it begins no other one meanwhile.
  process.kill(Number(first), 'SIGSTOP');
  const { stdout } = Bun.spawnSync(['ps', '-o', 'pid=', '--ppid', first]);
  const others = stdout.toString().split(/\s+/).filter(Boolean).map(Number);
  for (const pid of others) signal(pid, 'SIGSTOP');
  return () => {
    for (const pid of [...others, Number(first)]) signal(pid, 'SIGCONT');
  };
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, name);
  } catch {
    // Nothing is lost: a process that has ended need not be stopped.
  }
}
