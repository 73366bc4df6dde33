/** A mount point in `/proc/self/mountinfo` (proc(5)): its path, with octal escapes, and its options. */
const MOUNT = /^\d+ \d+ \S+ \S+ (\S+) (\S+) /;

/**
 * Returns true if programs and libraries can be loaded from a folder, by the text of `/proc/self/mountinfo`:
 * its mount lacks the option `noexec`. The path is absolute, without symbolic links.
 */
export function isExecutable(directory: string, mountinfo: string): boolean {
  let nearest = '';
  let options: readonly string[] = [];
  for (const line of mountinfo.split('\n')) {
    const [, escaped, found] = MOUNT.exec(line) ?? [];
    if (escaped === undefined || found === undefined) continue;
    const path = escaped.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
    const is_above = path === '/' || directory === path || directory.startsWith(`${path}/`);
    // Of two mounts at one path, the later one is visible.
    if (!is_above || path.length < nearest.length) continue;
    nearest = path;
    options = found.split(',');
  }
  return !options.includes('noexec');
}
