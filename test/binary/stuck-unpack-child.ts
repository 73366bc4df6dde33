import { unpackedRoot } from '../../src/binary/unpack.ts';
import { packageOf } from './package.ts';

/** Begins to unpack the small program into the folder of its first argument, says so, and never gets the archive. */
const [cache = ''] = process.argv.slice(2);
setInterval(() => {}, 60_000);
const archive = () => {
  console.log('begun');
  return new Promise<never>(() => {});
};
await unpackedRoot({ ...packageOf(), archives: [archive] }, cache, Date.now());
