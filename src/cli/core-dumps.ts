import { dlopen } from 'bun:ffi';

const RLIMIT_CORE = 4;
/**
 * No file is written below a page's size. A handler in `core_pattern` is started at any limit but exactly one byte.
 * Some handlers keep what they are given at a limit of 0 (Linux's `fs/coredump.c`).
 */
const NO_CORE_BYTES = process.platform === 'linux' ? 1n : 0n;

/**
 * Keeps the memory of this process and of those that it starts, with records and keys in it, out of core files. Nobody
 * can raise the limit again. Where the system forbids memory that is written and executed, the limit stays as it is.
 */
export function forbidCoreDumps(): void {
  try {
    const { symbols, close } = dlopen(process.platform === 'darwin' ? 'libc.dylib' : 'libc.so.6', {
      setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    });
    // It fails where the hard limit is 0 already: then no file is written.
    symbols.setrlimit(RLIMIT_CORE, new BigUint64Array([NO_CORE_BYTES, NO_CORE_BYTES]));
    close();
  } catch {
    // Bun cannot call C there. The service manager's own limit holds.
  }
}
