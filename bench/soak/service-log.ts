import { dirname, join } from 'node:path';
import { Glob } from 'bun';
import { field } from '../../test/cli/support.ts';
import type { Observed } from './observed.ts';
import type { Served } from './served.ts';

/** The report on the service's log. */
export interface LogReport {
  readonly lines: number;
  readonly problems: number;
  /** The number of holds that starts after a kill released. */
  readonly holds_released: number;
}

const PROBLEM = 'problem';

/** Counts the lines of the log; complains of problems, which are the service's own fault, and of standard error. */
export async function checkLog(served: Served, observed: Observed): Promise<LogReport> {
  const printed = await Bun.file(served.errors).text();
  if (printed !== '') observed.complain(`The service wrote on standard error: ${printed.slice(0, 500)}`);
  let [lines, problems, holds_released] = [0, 0, 0];
  for await (const name of new Glob('log.jsonl*').scan(dirname(served.log))) {
    const text = await Bun.file(join(dirname(served.log), name)).text();
    for (const line of text.split('\n')) {
      if (line === '') continue;
      lines += 1;
      holds_released += Number(/"holds":(\d+)/.exec(line)?.[1] ?? 0);
      // A killed process may leave half a line.
      if (!line.includes(`"msg":"${PROBLEM}`)) continue;
      problems += 1;
      const parsed: unknown = JSON.parse(line);
      observed.complain(`The service has a problem at ${field(parsed, 'step')}: ${line.slice(0, 300)}`);
    }
  }
  return { lines, problems, holds_released };
}
