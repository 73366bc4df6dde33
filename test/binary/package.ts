import { createHash } from 'node:crypto';
import type { Package } from '../../src/binary/unpack.ts';

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

/** A small program: three files, in folders, of which one is large enough to meet limits. */
export const CONTENTS: Readonly<Record<string, string>> = {
  'package.json': '{"name":"small"}',
  'src/main.js': 'export default 1;',
  'native/weights.bin': 'w'.repeat(300_000),
};

/** Returns the package of an executable with these files. `archived` are the bytes that its archive really has. */
export function packageOf(
  contents: Readonly<Record<string, string>> = CONTENTS,
  archived: Readonly<Record<string, string>> = contents,
): Package {
  const files = Object.entries(contents).map(([path, text]) => ({
    path,
    size_bytes: text.length,
    sha256: sha256(text),
  }));
  return {
    sha256: sha256(JSON.stringify(files)),
    files,
    archives: [() => new Bun.Archive({ ...archived }).bytes()],
  };
}
