import { dlopen } from 'bun:ffi';

const RLIMIT_CORE = 4;
/** An operation of Linux's prctl(2). */
const PR_SET_DUMPABLE = 4;
/**
 * A core file of less than a page is not written. A handler in `core_pattern` starts at any limit but exactly
 * one byte. Some handlers keep a dump at a limit of 0 (Linux's `fs/coredump.c`).
 */
const NO_CORE_BYTES = process.platform === 'linux' ? 1n : 0n;

/**
 * Keeps the memory of this process and its children, which contains records and keys, out of core files. The
 * limit cannot be raised again. On Linux crash handlers do not get the memory either, and no other process of
 * the same user can read it. Has no effect where the system forbids memory that is written and executed.
 */
export function forbidCoreDumps(): void {
  const { platform } = process;
  try {
    const { symbols, close } = dlopen(platform === 'darwin' ? 'libc.dylib' : 'libc.so.6', {
      setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    });
    // It fails where the hard limit is 0 already; then no file is written.
    symbols.setrlimit(RLIMIT_CORE, new BigUint64Array([NO_CORE_BYTES, NO_CORE_BYTES]));
    close();
    if (platform === 'linux') forbidDump();
  } catch {
    // Bun cannot call C there, and the service manager's own limit applies.
  }
}

/**
 * Makes this process not dumpable. A child process that runs another program is dumpable until it calls this
 * too.
 */
function forbidDump(): void {
  const { symbols, close } = dlopen('libc.so.6', { prctl: { args: ['i32', 'u64'], returns: 'i32' } });
  symbols.prctl(PR_SET_DUMPABLE, 0n);
  close();
}
