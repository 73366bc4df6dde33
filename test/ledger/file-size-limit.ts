import { dlopen } from 'bun:ffi';

const RLIMIT_FSIZE = 1;
const SIGXFSZ = 25;
const SIG_IGN = 1;
const UNLIMITED = 2n ** 64n - 1n;

const libc = dlopen(process.platform === 'darwin' ? 'libc.dylib' : 'libc.so.6', {
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  signal: { args: ['i32', 'usize'], returns: 'usize' },
});

/**
 * Makes the operating system refuse this process's writes behind that byte of any file, as a full disk does. Null takes
 * the limit away. Works without privileges.
 */
export function limitFileSize(bytes: number | null): void {
  libc.symbols.signal(SIGXFSZ, SIG_IGN);
  const limits = new BigUint64Array(2);
  if (libc.symbols.getrlimit(RLIMIT_FSIZE, limits) !== 0) throw new Error('getrlimit failed');
  const [, hard = UNLIMITED] = limits;
  limits[0] = bytes === null ? hard : BigInt(bytes);
  if (libc.symbols.setrlimit(RLIMIT_FSIZE, limits) !== 0) throw new Error('setrlimit failed');
}
