import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { defaultPrefixCacheBytes } from '../../native/evaluators/addon/addon-evaluator.ts';
import { machineMemory } from '../../native/machine-memory.ts';

const MACHINE_BYTES = 25_000_000_000;
const V2_MOUNT = '24 31 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n';
const V1_MOUNTS =
  '33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n';
/** The value of v1 without a limit. */
const V1_UNLIMITED = '9223372036854771712\n';

/** A stand-in for the files of the system. */
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tds-memory-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function memoryOf(files: Readonly<Record<string, string>>, constrained_bytes = 0) {
  write(files);
  return machineMemory({ root, machine_bytes: MACHINE_BYTES, constrained_bytes });
}

test('without a limit, and without cgroups, it is the machine’s', () => {
  expect(memoryOf({})).toEqual({ bytes: MACHINE_BYTES, limiter: 'machine' });
  expect(
    memoryOf({
      'proc/self/cgroup': '0::/user.slice\n',
      'proc/self/mountinfo': V2_MOUNT,
      'sys/fs/cgroup/user.slice/memory.max': 'max\n',
      'sys/fs/cgroup/user.slice/memory.high': 'max\n',
    }),
  ).toEqual({ bytes: MACHINE_BYTES, limiter: 'machine' });
});

test('a container’s limit by cgroup v2 counts, where the container sees its group as the root', () => {
  expect(
    memoryOf({
      'proc/self/cgroup': '0::/\n',
      'proc/self/mountinfo': V2_MOUNT,
      'sys/fs/cgroup/memory.max': '900000000\n',
      'sys/fs/cgroup/memory.high': 'max\n',
    }),
  ).toEqual({ bytes: 900_000_000, limiter: 'cgroup' });
});

test('the least limit of a unit and of the slices above it counts, the one that slows down too', () => {
  const files = {
    'proc/self/cgroup': '0::/system.slice/tds.service\n',
    'proc/self/mountinfo': V2_MOUNT,
    'sys/fs/cgroup/system.slice/memory.max': '2000000000\n',
    'sys/fs/cgroup/system.slice/tds.service/memory.max': '3000000000\n',
  };
  expect(memoryOf(files)).toEqual({ bytes: 2_000_000_000, limiter: 'cgroup' });
  expect(memoryOf({ 'sys/fs/cgroup/system.slice/tds.service/memory.high': '1500000000\n' })).toEqual({
    bytes: 1_500_000_000,
    limiter: 'cgroup',
  });
});

test('a limit by cgroup v1 counts, beside a v2 that limits nothing', () => {
  const files = {
    'proc/self/cgroup': '9:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/docker/a\n',
    'proc/self/mountinfo': `${V1_MOUNTS}36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`,
    'sys/fs/cgroup/memory/memory.limit_in_bytes': V1_UNLIMITED,
    'sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes': '900000000\n',
  };
  expect(memoryOf(files)).toEqual({ bytes: 900_000_000, limiter: 'cgroup' });
  expect(memoryOf({ 'sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes': V1_UNLIMITED })).toEqual({
    bytes: MACHINE_BYTES,
    limiter: 'machine',
  });
});

test('a container that sees the name of its group on the host finds it where it is mounted', () => {
  const limited = { 'sys/fs/cgroup/memory/memory.limit_in_bytes': '900000000\n' };
  const mounts = V1_MOUNTS.replace('0:32 /', '0:32 /docker/a');
  expect(
    memoryOf({ ...limited, 'proc/self/cgroup': '4:memory:/docker/a\n', 'proc/self/mountinfo': mounts }),
  ).toEqual({ bytes: 900_000_000, limiter: 'cgroup' });
  // Another namespace: the group lies outside of what is mounted.
  expect(memoryOf({ 'proc/self/cgroup': '4:memory:/../b\n' })).toEqual({
    bytes: 900_000_000,
    limiter: 'cgroup',
  });
});

test('what the runtime found counts too', () => {
  expect(memoryOf({}, 800_000_000)).toEqual({ bytes: 800_000_000, limiter: 'cgroup' });
  expect(memoryOf({}, MACHINE_BYTES)).toEqual({ bytes: MACHINE_BYTES, limiter: 'machine' });
});

test('kept prefixes take an eighth of it, and no more than 512 MB', () => {
  const files = {
    'proc/self/cgroup': '0::/\n',
    'proc/self/mountinfo': V2_MOUNT,
    'sys/fs/cgroup/memory.max': '900000000\n',
  };
  expect(defaultPrefixCacheBytes(memoryOf(files))).toBe(112_500_000);
  expect(defaultPrefixCacheBytes(memoryOf({ 'sys/fs/cgroup/memory.max': 'max' }))).toBe(512 * 2 ** 20);
});
