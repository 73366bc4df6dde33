import { expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { propertySeed } from '../ledger/support.ts';

const BYTES_MAX = 1_000;

/** A stream whose every write waits until the test says what becomes of it. */
class HeldStream extends Writable {
  taken = '';
  held_bytes = 0;
  #settle: ((error: Error | null) => void) | undefined;

  constructor() {
    super({ decodeStrings: false, autoDestroy: false });
  }

  override write(chunk: string, callback?: unknown): boolean {
    this.held_bytes = Buffer.byteLength(chunk);
    this.#settle = (error) => {
      this.held_bytes = 0;
      if (error === null) this.taken += chunk;
      if (typeof callback === 'function') callback(error);
    };
    return true;
  }

  /** Ends the write that is held, if there is one. */
  settle(error: Error | null): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(error);
  }
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').slice(0, -1);
}

test('whatever becomes of the writes, every line is written once and in order, or counted as lost', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 300 }) },
    { weight: 2, arbitrary: fc.constant('taken' as const) },
    { weight: 1, arbitrary: fc.constant('refused' as const) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const stream = new HeldStream();
      const output = new BoundedOutput(stream, BYTES_MAX);
      let lost = 0;
      output.onResumed = (lines) => {
        lost += lines;
      };
      const written: string[] = [];
      for (const one of steps) {
        if (typeof one === 'number') {
          const line = `${written.length} ${'é'.repeat(one)}`;
          written.push(line);
          output.write(`${line}\n`);
        } else stream.settle(one === 'taken' ? null : new Error('ENOSPC'));
        expect(stream.held_bytes).toBeLessThanOrEqual(BYTES_MAX);
      }
      const flushed = output.flush(60_000);
      while (output.isStuck) stream.settle(null);
      await flushed;
      // One more write that succeeds: losses are told then.
      written.push('last');
      output.write('last\n');
      stream.settle(null);

      const taken = linesOf(stream.taken);
      expect(taken.length + lost).toBe(written.length);
      const places = taken.map((line) => written.indexOf(line));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(new Set(places).size).toBe(places.length);
      expect(places).not.toContain(-1);
    }),
    { seed: propertySeed('bounded output') },
  );
});

test('what waits is bounded in bytes, and the lines of before the gap are kept', () => {
  const stream = new HeldStream();
  const output = new BoundedOutput(stream, BYTES_MAX);
  for (let index = 0; index < 1_000; index += 1) output.write(`${String(index).padStart(99, '0')}\n`);
  while (output.isStuck) stream.settle(null);
  expect(linesOf(stream.taken).map(Number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('what was lost is told once, also where the line that tells it did not fit at first', () => {
  const stream = new HeldStream();
  const output = new BoundedOutput(stream, BYTES_MAX);
  output.onResumed = (lines) => output.write(`${lines} lines were lost\n`);
  output.write('a\n');
  output.write(`${'b'.repeat(BYTES_MAX - 3)}\n`);
  output.write('c\n');
  output.write('d\n');
  while (output.isStuck) stream.settle(null);
  expect(linesOf(stream.taken)).toEqual(['a', 'b'.repeat(BYTES_MAX - 3), '2 lines were lost']);
});

test('a flush ends at its deadline while a write is held, and at once when every write fails', async () => {
  const held = new BoundedOutput(new HeldStream());
  held.write('line\n');
  await held.flush(1);
  expect(held.isStuck).toBe(true);

  const failing = new Writable({
    autoDestroy: false,
    write: (_chunk, _encoding, done) => done(new Error('EIO')),
  });
  const output = new BoundedOutput(failing);
  for (let index = 0; index < 5_000; index += 1) output.write(`${index}\n`);
  await output.flush(60_000);
  expect(output.isStuck).toBe(false);
});
