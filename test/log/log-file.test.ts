import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { createLog } from '../../src/log/log.ts';
import { LogFile } from '../../src/log/log-file.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { limitFileSize } from '../ledger/file-size-limit.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FLUSH_MS = 10_000;

let root: ReturnType<typeof temporaryDirectory>;
let path: string;
beforeEach(() => {
  root = temporaryDirectory();
  path = join(root.path, 'tds.log');
});
afterEach(() => root.remove());

/** Writes a text and waits for it. */
function written(file: LogFile, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    file.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** Returns the files' joined content, oldest first. */
function kept(keep: number): string {
  const places = Array.from({ length: keep }, (_, index) => `${path}.${keep - index}`);
  return [...places, path]
    .filter((place) => existsSync(place))
    .map((place) => readFileSync(place, 'utf8'))
    .join('');
}

describe('rotation', () => {
  test('the files are the end of what was written, each within its size, and no more of them than are kept', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 10, max: 100 }),
        async (lengths, keep, bytes_max) => {
          for (const name of readdirSync(root.path)) rmSync(join(root.path, name));
          let file = await LogFile.open(path, { bytes_max, keep });
          let all = '';
          for (const [index, length] of lengths.entries()) {
            // Every now and then the program is started anew.
            if (index % 7 === 6) {
              await file.close();
              file = await LogFile.open(path, { bytes_max, keep });
            }
            const line = `${String(index).padEnd(length, '.')}\n`;
            all += line;
            await written(file, line);
          }
          await file.close();
          const files = readdirSync(root.path);
          expect(files.length).toBeLessThanOrEqual(keep + 1);
          const rest = kept(keep);
          expect(all.endsWith(rest)).toBe(true);
          // It begins with a whole line.
          expect(all.length === rest.length || all.at(-rest.length - 1) === '\n').toBe(true);
          for (const name of files) {
            const text = readFileSync(join(root.path, name), 'utf8');
            expect(text.length <= bytes_max || text.trimEnd().split('\n').length === 1).toBe(true);
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  test('a file is its owner’s to write, and of no use to strangers', async () => {
    const file = await LogFile.open(path, { bytes_max: 100, keep: 1 });
    expect(statSync(path).mode & 0o137).toBe(0);
    await file.close();
  });
});

describe('another program moves the file away', () => {
  test('until it is opened again lines follow the file, and then they are in a new one', async () => {
    const file = await LogFile.open(path, { bytes_max: 1_000, keep: 1 });
    await written(file, 'first\n');
    renameSync(path, `${path}-moved`);
    await written(file, 'second\n');
    await file.reopen();
    await written(file, 'third\n');
    await file.close();
    expect(readFileSync(`${path}-moved`, 'utf8')).toBe('first\nsecond\n');
    expect(readFileSync(path, 'utf8')).toBe('third\n');
  });
});

describe('a file that cannot be written', () => {
  test('is refused at the start', async () => {
    await expect(
      LogFile.open(join(root.path, 'missing', 'tds.log'), { bytes_max: 1, keep: 1 }),
    ).rejects.toThrow('ENOENT');
  });

  test('a full disk loses lines, without a throw', async () => {
    if (!existsSync('/dev/full')) return;
    const file = await LogFile.open('/dev/full', { bytes_max: 1_000_000, keep: 1 });
    await expect(written(file, 'lost\n')).rejects.toThrow('ENOSPC');
    await expect(written(file, 'lost\n')).rejects.toThrow('ENOSPC');
    await file.close();
  });

  test('a disk that fills up in the middle of a write leaves whole lines, and none behind a part of another', async () => {
    const file = await LogFile.open(path, { bytes_max: 1_000_000, keep: 1 });
    await written(file, 'before\n');
    limitFileSize('before\nlo'.length);
    await expect(written(file, 'lost\n').finally(() => limitFileSize(null))).rejects.toThrow('EFBIG');
    await written(file, 'after\n');
    await file.close();
    expect(readFileSync(path, 'utf8')).toBe('before\nafter\n');
  });

  test('the log says how many lines were lost, once it is written again', async () => {
    const directory = join(root.path, 'logs');
    mkdirSync(directory);
    path = join(directory, 'tds.log');
    const file = await LogFile.open(path, { bytes_max: 1_000_000, keep: 1 });
    const output = new BoundedOutput(file);
    const log = createLog('info', output);
    log.info('before');
    await output.flush(FLUSH_MS);
    rmSync(directory, { recursive: true });
    // Not a directory: no file can be opened beneath it.
    writeFileSync(directory, '');
    await file.reopen();
    log.info('lost');
    await output.flush(FLUSH_MS);
    rmSync(directory);
    mkdirSync(directory);
    log.info('after');
    await eventually(() => existsSync(path) && readFileSync(path, 'utf8').includes('were lost'));
    await output.flush(FLUSH_MS);
    const lines: readonly unknown[] = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      expect.objectContaining({ msg: 'after' }),
      expect.objectContaining({ msg: 'lines of this log were lost: it could not be written', lines: 1 }),
    ]);
    await file.close();
  });
});
