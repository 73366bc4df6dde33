/**
 * Preloaded, makes a process compute with one variant of ggml's CPU backend, whatever the CPU's best one is:
 * `TDS_TEST_CPU_LIBRARY` has its path. Both evaluators take the backend that is loaded first.
 */
import { afterAll, expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { addonStatus } from '../../../native/addon/index.ts';
import { cpuLibraries } from '../../../native/cpu-library.ts';
import { temporaryDirectory } from './models.ts';

const library = process.env.TDS_TEST_CPU_LIBRARY ?? '';
await using directory = await temporaryDirectory();
await symlink(library, join(directory.path, basename(library)));
const status = await addonStatus(false, directory.path);
if (!status.available) throw new Error(status.reason);

/** A second backend beside it would leave open which of them has computed. */
function expectOnlyIt(): void {
  const loaded = cpuLibraries(readFileSync('/proc/self/maps', 'utf8'));
  expect(loaded.map((path) => basename(path))).toEqual([basename(library)]);
}
expectOnlyIt();
afterAll(expectOnlyIt);
