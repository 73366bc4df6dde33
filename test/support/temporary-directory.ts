import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder, which goes away with `remove` or when it is disposed of. */
export function temporaryDirectory() {
  const path = mkdtempSync(join(tmpdir(), 'tds-test-'));
  const remove = () => rmSync(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove, [Symbol.asyncDispose]: async () => remove() };
}
