import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join, relative } from 'node:path';
import { constrainedMemory } from 'node:process';

/** The source of the memory limit. Containers and services of systemd are limited by a `cgroup`. */
export type MemoryLimiter = 'machine' | 'cgroup';

/** The memory that this process may use. */
export interface MachineMemory {
  readonly bytes: number;
  readonly limiter: MemoryLimiter;
}

/** The sources of the limits, which tests replace. */
export interface MemorySources {
  /** The folder of `/proc` and `/sys`. */
  readonly root: string;
  /** The machine's memory in bytes. */
  readonly machine_bytes: number;
  /** The runtime's limit in bytes; 0 for none. */
  readonly constrained_bytes: number;
}

interface CgroupVersion {
  readonly file_system: string;
  /** The line of `/proc/self/cgroup` that names this process's group: `id:controllers:path`. */
  readonly line: RegExp;
  /** The files of a group that limit its memory. Above `memory.high` the kernel slows the group down to a crawl. */
  readonly limits: readonly string[];
  /** Returns true if a mount has these files, by its options. */
  readonly isMounted: (options: string) => boolean;
}

const VERSIONS: readonly CgroupVersion[] = [
  {
    file_system: 'cgroup2',
    line: /^0::(.*)$/m,
    limits: ['memory.max', 'memory.high'],
    isMounted: () => true,
  },
  {
    file_system: 'cgroup',
    line: /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m,
    limits: ['memory.limit_in_bytes'],
    isMounted: (options) => options.split(',').includes('memory'),
  },
];

/** A line of `mountinfo`: its mount's root and place, and after the dash its type, source and options. */
const MOUNT = /^\d+ \d+ \S+ (\S+) (\S+) .*? - (\S+) \S+ (\S+)$/gm;

/**
 * Returns the memory that this process may use: the least of the machine's, its control group's and its ancestors'
 * limits. Both versions of control groups count. Every default that depends on memory follows it.
 */
export function machineMemory(sources: MemorySources = systemSources()): MachineMemory {
  const { machine_bytes, constrained_bytes } = sources;
  const limits = [...cgroupLimits(sources.root), ...(constrained_bytes > 0 ? [constrained_bytes] : [])];
  const least_bytes = Math.min(machine_bytes, ...limits);
  return { bytes: least_bytes, limiter: least_bytes < machine_bytes ? 'cgroup' : 'machine' };
}

function systemSources(): MemorySources {
  return { root: '/', machine_bytes: totalmem(), constrained_bytes: constrainedMemory() };
}

/** Returns the limits in bytes of this process's groups; none outside Linux. */
function cgroupLimits(root: string): readonly number[] {
  const groups = read(join(root, 'proc/self/cgroup'));
  const mounts = [...read(join(root, 'proc/self/mountinfo')).matchAll(MOUNT)];
  return VERSIONS.flatMap(({ file_system, line, limits, isMounted }) => {
    const group = line.exec(groups)?.[1];
    const mount = mounts.find(([, , , type, options = '']) => type === file_system && isMounted(options));
    if (group === undefined || mount === undefined) return [];
    const [, mounted_group = '/', place = ''] = mount;
    return foldersUpTo(join(root, place), pathBelow(mounted_group, group)).flatMap((folder) =>
      limits.flatMap((file) => limitIn(join(folder, file))),
    );
  });
}

/** Returns the path from a mount to the group; empty if the group is elsewhere, as in another namespace. */
function pathBelow(mounted_group: string, group: string): string {
  const path = relative(mounted_group, group);
  return path.startsWith('..') ? '' : path;
}

/** Returns the folders of a group and of its mounted ancestors. */
function foldersUpTo(place: string, path: string): readonly string[] {
  const names = path.split('/').filter((name) => name !== '');
  return Array.from({ length: names.length + 1 }, (_, depth) => join(place, ...names.slice(0, depth)));
}

/** Returns the number in the file; none for `max`, or if there is no such file. */
function limitIn(path: string): readonly number[] {
  const limit_bytes = Number.parseInt(read(path), 10);
  return limit_bytes > 0 ? [limit_bytes] : [];
}

/** Returns the text of the file; empty if it cannot be read. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Nothing is lost: a system without the file has no such limit.
    return '';
  }
}
