import { dlopen } from 'bun:ffi';

const RLIMIT_CORE = 4;
/** An operation of Linux's prctl(2). */
const PR_SET_DUMPABLE = 4;
/**
 * No file is written below a page's size. A handler in `core_pattern` is started at any limit but exactly one byte.
 * Some handlers keep what they are given at a limit of 0 (Linux's `fs/coredump.c`).
 */
const NO_CORE_BYTES = process.platform === 'linux' ? 1n : 0n;

/**
 * Keeps the memory of this process and of those that it starts, with records and keys in it, out of core files. Nobody
 * can raise the limit again. On Linux no handler of crashes gets its memory either, and no other process of its user
 * can read it. Where the system forbids memory that is written and executed, both stay as they are.
 */
export function forbidCoreDumps(): void {
  const { platform } = process;
  try {
    const { symbols, close } = dlopen(platform === 'darwin' ? 'libc.dylib' : 'libc.so.6', {
      setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    });
    // It fails where the hard limit is 0 already: then no file is written.
    symbols.setrlimit(RLIMIT_CORE, new BigUint64Array([NO_CORE_BYTES, NO_CORE_BYTES]));
    close();
    if (platform === 'linux') forbidDump();
  } catch {
    // Bun cannot call C there. The service manager's own limit holds.
  }
}

/** A program that a process starts is dumpable again, until it calls this too. */
function forbidDump(): void {
  const { symbols, close } = dlopen('libc.so.6', { prctl: { args: ['i32', 'u64'], returns: 'i32' } });
  symbols.prctl(PR_SET_DUMPABLE, 0n);
  close();
}
