import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second. */
const MS_PER_TICK = 10;

/** Returns the CPU time of a process and its descendants, in milliseconds. Linux only. */
export function cpuTime_ms(root: number): number {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
        return [
          { id: Number(name), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) },
        ];
      } catch {
        // The process has ended meanwhile.
        return [];
      }
    });
  const ticksOf = (id: number): number =>
    processes
      .filter(({ parent }) => parent === id)
      .reduce((sum, child) => sum + ticksOf(child.id), processes.find((one) => one.id === id)?.ticks ?? 0);
  return ticksOf(root) * MS_PER_TICK;
}
