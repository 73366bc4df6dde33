import { UnpackFailed, unpackedRoot } from '../../src/binary/unpack.ts';
import { limitFileSize } from '../ledger/file-size-limit.ts';
import { packageOf } from './package.ts';

/** Unpacks the small program into the folder of its first argument, with files no longer than the second; prints what came of it. */
const [cache = '', limit_bytes] = process.argv.slice(2);
if (limit_bytes !== undefined) limitFileSize(Number(limit_bytes));
try {
  console.log(await unpackedRoot(packageOf(), cache, Date.now()));
} catch (error) {
  if (!(error instanceof UnpackFailed)) throw error;
  console.log(error.message);
  process.exitCode = 1;
}
