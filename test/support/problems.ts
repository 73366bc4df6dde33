import { Writable } from 'node:stream';
import { type AdjustableLog, createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import type { Cause } from '../../src/problems/causes.ts';

/** A line of the log, as far as tests read it. */
export interface LogLine {
  readonly msg: string;
  readonly request_id?: string | null;
  readonly step?: string;
  readonly model?: string;
  readonly code?: string | null;
  readonly error?: string;
  readonly causes?: readonly Cause[];
  readonly same_as?: string | null;
  readonly repeated?: number;
  readonly holds?: number;
  /** Of a request's own line. */
  readonly status?: number;
}

/** The service's log on a real output whose text is kept. */
export class RecordedLog {
  readonly log: AdjustableLog;
  text = '';
  readonly #output: BoundedOutput;

  constructor(level: 'info' | 'error' = 'info') {
    const write = (chunk: string) => {
      this.text += chunk;
    };
    const stream = new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        write(chunk);
        done();
      },
    });
    this.#output = new BoundedOutput(stream, Number.POSITIVE_INFINITY);
    this.log = createLog(level, this.#output);
  }

  /** All lines so far, once they are written. */
  async lines(): Promise<readonly LogLine[]> {
    await this.#output.flush(60_000);
    return this.text
      .split('\n')
      .slice(0, -1)
      .map((line): LogLine => JSON.parse(line));
  }

  /** The lines of problems so far. */
  async problems(): Promise<readonly LogLine[]> {
    return (await this.lines()).filter(({ msg }) => msg === 'problem');
  }
}
