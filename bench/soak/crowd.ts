import { join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { linesOf } from '../support/lines-of.ts';
import type { Client } from './observed.ts';

const Report = Type.Object({
  open: Type.Record(Type.String(), Type.Number()),
  statuses: Type.Record(Type.String(), Type.Number()),
});

/** The statuses that idle connections may get. */
const EXPECTED = /^(silent 408|answered once (200|408)|slow (head|body) (408|503)|slow reader 200)$/;

/** The idle and slow connections, in their own process. */
export class Crowd {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  readonly #read: Promise<void>;
  #report: Static<typeof Report> = { open: {}, statuses: {} };

  constructor(address: string, { key }: Client, idle: number, slow: number) {
    const program = join(import.meta.dir, 'crowd-child.ts');
    this.#child = Bun.spawn([process.execPath, program, address, key ?? '', String(idle), String(slow)], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
      detached: true,
    });
    this.#read = this.#readReports();
  }

  /** The number of open idle connections. */
  get idle(): number {
    return this.#openOf('silent') + this.#openOf('answered once');
  }

  /** The number of open slow connections. */
  get slow(): number {
    return this.#openOf('slow head') + this.#openOf('slow body') + this.#openOf('slow reader');
  }

  /** The counts of statuses by kind of connection. */
  get statuses(): Readonly<Record<string, number>> {
    return this.#report.statuses;
  }

  /** Returns the statuses that no such connection should get. */
  unexpected(): readonly string[] {
    return Object.keys(this.statuses).filter((one) => !EXPECTED.test(one));
  }

  /** Closes all connections. */
  async leave(): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
    await this.#read;
  }

  #openOf(kind: string): number {
    return this.#report.open[kind] ?? 0;
  }

  async #readReports(): Promise<void> {
    for await (const line of linesOf(this.#child.stdout)) {
      const report: unknown = JSON.parse(line);
      if (Value.Check(Report, report)) this.#report = report;
    }
  }
}
