import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { USE_FILE } from '../../src/binary/in-use.ts';
import { unpackedRoot } from '../../src/binary/unpack.ts';
import { packageOf } from './package.ts';

const CHILD = join(import.meta.dir, 'in-use-child.ts');
const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

let directory: string;
let cache: string;
let children: Bun.Subprocess<'ignore', 'pipe', 'inherit'>[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tds-versions-'));
  cache = join(directory, 'cache');
  children = [];
});
afterEach(async () => {
  for (const child of children) await kill(child);
  rmSync(directory, { recursive: true, force: true });
});

/** A process of that version, which started at that time and runs. */
async function start(version: string, now_ms: number) {
  const child = Bun.spawn([process.execPath, CHILD, cache, version, String(now_ms)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  children.push(child);
  for await (const line of child.stdout.pipeThrough(new TextDecoderStream())) {
    return { child, root: line.trim() };
  }
  throw new Error(`version ${version} did not start`);
}

async function kill(child: (typeof children)[number]): Promise<void> {
  child.kill('SIGKILL');
  await child.exited;
}

const startHere = (version: string, now_ms: number) => unpackedRoot(packageOf({ version }), cache, now_ms);

test('a version that no process runs goes a day after its last start, and not before', async () => {
  const old = await start('1', NOW_MS);
  await kill(old.child);
  await startHere('2', NOW_MS + DAY_MS);
  expect(existsSync(old.root)).toBe(true);
  const used = await startHere('2', NOW_MS + DAY_MS + 1);
  expect(readdirSync(cache)).toEqual([basename(used)]);
});

test('a start of a version begins its day anew', async () => {
  const old = await start('1', NOW_MS);
  await kill(old.child);
  await kill((await start('1', NOW_MS + DAY_MS)).child);
  await startHere('2', NOW_MS + DAY_MS + 1);
  expect(existsSync(old.root)).toBe(true);
});

test('versions that run side by side stay, however long ago they started; once killed, they go', async () => {
  const [old, older] = [await start('1', NOW_MS), await start('2', NOW_MS)];
  // Two processes of one version: the first one's end does not take the folder from the second.
  const second = await start('1', NOW_MS);
  await kill(old.child);
  await startHere('3', NOW_MS + 400 * DAY_MS);
  expect([existsSync(old.root), existsSync(older.root)]).toEqual([true, true]);
  await kill(second.child);
  await kill(older.child);
  const used = await startHere('3', NOW_MS + 400 * DAY_MS);
  expect(readdirSync(cache)).toEqual([basename(used)]);
});

test('a folder that was never marked may be in use: it stays', async () => {
  const old = await start('1', NOW_MS);
  await kill(old.child);
  rmSync(join(old.root, USE_FILE));
  await startHere('2', NOW_MS + 400 * DAY_MS);
  expect(existsSync(old.root)).toBe(true);
});

test('what is no folder of a version stays', async () => {
  await startHere('1', NOW_MS);
  await Bun.write(join(cache, 'notes.txt'), 'mine');
  await Bun.write(join(cache, 'abc/in-use'), '');
  await startHere('2', NOW_MS + 400 * DAY_MS);
  expect(readdirSync(cache)).toContain('notes.txt');
  expect(readdirSync(cache)).toContain('abc');
});

test('starts of versions that remove each other all come to a whole folder', async () => {
  const versions = ['1', '2', '3'];
  for (let round = 1; round <= 5; round += 1) {
    const started = await Promise.all(versions.map((version) => start(version, NOW_MS + 2 * round * DAY_MS)));
    for (const [index, { root }] of started.entries()) {
      expect(await Bun.file(join(root, 'version')).text()).toBe(versions[index] ?? '');
      expect(statSync(root).isDirectory()).toBe(true);
    }
    for (const { child } of started) await kill(child);
  }
});
