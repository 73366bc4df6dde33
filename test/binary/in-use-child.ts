import { unpackedRoot } from '../../src/binary/unpack.ts';
import { packageOf } from './package.ts';

/** Starts the small program of that version, and runs until it is ended; prints its folder. */
const [cache = '', version = '', now_ms = ''] = process.argv.slice(2);
console.log(await unpackedRoot(packageOf({ version }), cache, Number(now_ms)));
setInterval(() => {}, 60_000);
