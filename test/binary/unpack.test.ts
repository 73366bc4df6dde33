import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { chown, lchown, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Package, UnpackFailed, unpackedRoot } from '../../src/binary/unpack.ts';
import { CONTENTS, packageOf } from './package.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const IS_ROOT = process.getuid?.() === 0;
const CHILD = join(import.meta.dir, 'unpack-child.ts');
const STUCK_CHILD = join(import.meta.dir, 'stuck-unpack-child.ts');

let directory: string;
let cache: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tds-unpack-'));
  cache = join(directory, 'cache');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const unpack = (given: Package = packageOf()) => unpackedRoot(given, cache, NOW_MS);
/** Returns a package that counts reads of its archive, which a complete folder needs none of. */
function countingPackage(): Package & { readonly reads: () => number } {
  let reads = 0;
  const given = packageOf();
  return {
    ...given,
    archives: given.archives.map((read) => () => {
      reads += 1;
      return read();
    }),
    reads: () => reads,
  };
}

async function refusal(work: Promise<string>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof UnpackFailed)) throw new Error(`not refused: ${String(error)}`);
  return error.message;
}

function expectWhole(root: string): void {
  for (const [path, text] of Object.entries(CONTENTS))
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
}

test('a first start unpacks every file, for this user only, and leaves nothing else behind', async () => {
  const given = packageOf();
  const root = await unpack(given);
  expectWhole(root);
  expect(root).toBe(join(cache, given.sha256.slice(0, 16)));
  expect(readdirSync(cache)).toEqual([given.sha256.slice(0, 16)]);
  for (const path of [cache, root, join(root, 'src')]) expect(statSync(path).mode & 0o777).toBe(0o700);
  for (const path of Object.keys(CONTENTS)) expect(statSync(join(root, path)).mode & 0o777).toBe(0o600);
});

test('a second start reads no archive', async () => {
  const given = countingPackage();
  expect(await unpack(given)).toBe(await unpack(given));
  expect(given.reads()).toBe(1);
});

describe('a folder that is not as it was unpacked is repaired:', () => {
  const damages: Readonly<Record<string, (path: string) => unknown>> = {
    'a missing file': (path) => rmSync(path),
    'a cut file': (path) => truncateSync(path, 3),
    'other bytes of the same length': async (path) =>
      writeFile(path, 'x'.repeat(readFileSync(path).byteLength)),
    'a later time': (path) => utimes(path, 2e9, 2e9),
  };
  for (const [name, damage] of Object.entries(damages)) {
    test(name, async () => {
      await fc.assert(
        fc.asyncProperty(fc.subarray(Object.keys(CONTENTS), { minLength: 1 }), async (paths) => {
          const root = await unpack();
          for (const path of paths) await damage(join(root, path));
          const given = countingPackage();
          expect(await unpack(given)).toBe(root);
          expect(given.reads()).toBe(1);
          expectWhole(root);
        }),
        { numRuns: 10 },
      );
    });
  }

  test('without its folders', async () => {
    const root = await unpack();
    rmSync(join(root, 'src'), { recursive: true });
    rmSync(join(root, 'native'), { recursive: true });
    expectWhole(await unpack());
  });

  test('files that are intact stay the same files, because a program may be running on them', async () => {
    const root = await unpack();
    const { ino } = statSync(join(root, 'native/weights.bin'));
    rmSync(join(root, 'src/main.js'));
    await unpack();
    expect(statSync(join(root, 'native/weights.bin')).ino).toBe(ino);
  });

  test('what cannot be repaired is named', async () => {
    const root = await unpack();
    rmSync(join(root, 'src'), { recursive: true });
    await writeFile(join(root, 'src'), 'a file where a folder must be');
    expect(await refusal(unpack())).toBe(`${root} cannot be repaired (EEXIST): remove it and start again.`);
  });
});

describe('an executable that is damaged is not unpacked:', () => {
  test.each([
    ['other bytes', { ...CONTENTS, 'src/main.js': 'export default 2;' }, 'src/main.js is damaged'],
    ['a missing file', { 'package.json': CONTENTS['package.json'] ?? '' }, 'src/main.js is missing'],
  ])('%s', async (_, archived, reason) => {
    expect(await refusal(unpack(packageOf(CONTENTS, archived)))).toBe(`${reason}: get the executable again.`);
    expect(readdirSync(cache)).toEqual([]);
  });
});

test('many first starts at once all come to the same whole folder', async () => {
  mkdirSync(cache, { mode: 0o700 });
  const starts = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, CHILD, cache], { stdout: 'pipe', stderr: 'inherit' }),
  );
  const roots = await Promise.all(
    starts.map(async ({ stdout }) => (await new Response(stdout).text()).trim()),
  );
  expect(new Set(roots).size).toBe(1);
  expectWhole(roots[0] ?? '');
  expect(readdirSync(cache)).toHaveLength(1);
});

test('leftovers of a start that was cut go after an hour, not while it may still be writing', async () => {
  mkdirSync(join(cache, 'unpacking-old'), { recursive: true, mode: 0o700 });
  mkdirSync(join(cache, 'unpacking-new'), { mode: 0o700 });
  await utimes(join(cache, 'unpacking-old'), NOW_MS / 1_000 - 3_601, NOW_MS / 1_000 - 3_601);
  await utimes(join(cache, 'unpacking-new'), NOW_MS / 1_000 - 3_599, NOW_MS / 1_000 - 3_599);
  chmodSync(cache, 0o700);
  await unpack();
  expect(readdirSync(cache).filter((name) => name.startsWith('unpacking-'))).toEqual(['unpacking-new']);
});

test('what a killed start leaves takes no room from the next one, and what a running one writes stays', async () => {
  await using stuck = Bun.spawn([process.execPath, STUCK_CHILD, cache], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { value } = await stuck.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
  expect(value).toBe('begun\n');
  const unfinished = () => readdirSync(cache).filter((name) => name.startsWith('unpacking-'));
  const root = await unpack();
  expect(unfinished()).toHaveLength(1);
  stuck.kill('SIGKILL');
  await stuck.exited;
  rmSync(join(root, 'src/main.js'));
  await unpack();
  expect(unfinished()).toEqual([]);
});

describe('who could change the program is this user only:', () => {
  test.each([
    ['cache folder', () => cache, 0o770],
    ['cache folder', () => cache, 0o702],
    ['unpacked folder', () => join(cache, packageOf().sha256.slice(0, 16)), 0o720],
  ])('a %s that others can write is refused', async (_, path, mode) => {
    await unpack();
    chmodSync(path(), mode);
    expect(await refusal(unpack())).toBe(
      `${path()} can be written by other users: remove it, run "chmod 700" on it, or name another folder with TDS_CACHE.`,
    );
  });

  test.skipIf(!IS_ROOT)(
    'a link of another user is refused, who could turn it to another folder later',
    async () => {
      await unpack();
      const link = `${cache}-link`;
      await symlink(cache, link);
      await lchown(link, 12_345, 12_345);
      const unpacking = unpackedRoot(packageOf(), link, NOW_MS);
      expect(await refusal(unpacking)).toStartWith(`${link} belongs to another user`);
    },
  );

  test.skipIf(!IS_ROOT)('a folder of another user is refused', async () => {
    const root = await unpack();
    await chown(root, 12_345, 12_345);
    expect(await refusal(unpack())).toBe(
      `${root} belongs to another user: name a folder of this user with TDS_CACHE.`,
    );
    await chown(cache, 12_345, 12_345);
    expect(await refusal(unpack())).toStartWith(`${cache} belongs to another user`);
  });
});

describe('a folder that cannot take the program is named in one sentence:', () => {
  const ROOM = 'has no room for the 1 MB of the program: free some, or name another folder with TDS_CACHE.';

  test('a write that the disk refuses, and nothing stays behind', async () => {
    mkdirSync(cache, { mode: 0o700 });
    const child = Bun.spawn([process.execPath, CHILD, cache, '100000'], {
      stdout: 'pipe',
      stderr: 'inherit',
    });
    expect((await new Response(child.stdout).text()).trim()).toBe(`${cache} ${ROOM}`);
    expect(await child.exited).toBe(1);
    expect(readdirSync(cache)).toEqual([]);
  });

  test('less room than the program needs is seen before anything is written', async () => {
    const given = packageOf();
    const files = given.files.map((file) => ({ ...file, size_bytes: 2 ** 50 }));
    expect(await refusal(unpack({ ...given, files }))).toContain('has no room for');
    expect(readdirSync(cache)).toEqual([]);
  });

  test('a file where the folder must be', async () => {
    await writeFile(cache, '');
    expect(await refusal(unpack())).toBe(
      `${cache} cannot be used (EEXIST): name a folder that can be written with TDS_CACHE.`,
    );
  });

  test('a folder that cannot be made', async () => {
    cache = '/proc/tds-cache';
    expect(await refusal(unpack())).toMatch(
      /^\/proc\/tds-cache cannot be used \(E[A-Z]+\): name a folder that can be written with TDS_CACHE\.$/,
    );
  });
});

test('a complete folder serves from a cache that has become read-only', async () => {
  const root = await unpack();
  chmodSync(cache, 0o500);
  expect(await unpack()).toBe(root);
  chmodSync(cache, 0o700);
});
