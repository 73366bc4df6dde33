import { join } from 'node:path';
import { compileSources, requireLibrary } from '../../../native/addon/build.ts';
import { projectFile } from '../../../src/files/project-root.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_MARKERS } from '../support/models.ts';

/**
 * Builds `stress.cpp` under the compiler's sanitizers, and runs it on a generated model: decision-1 is too slow under a
 * sanitizer. Exit code 1 if a run fails.
 *
 *   bun run test:sanitizers [seconds, default 60] [seed]
 */

/** Addresses, leaks and undefined behaviour; data races. */
const SANITIZERS = ['address,undefined', 'thread'];
const [seconds = '60', ...seed] = process.argv.slice(2);

await using directory = await temporaryDirectory();
const model = join(directory.path, 'tiny.gguf');
const shape = { width: 256, heads: 2, cache_heads: 1, hidden: 288, quantized: true };
await writeTinyModel(model, { ...TINY_MARKERS, shape });

const library = requireLibrary(false);
for (const sanitizer of SANITIZERS) {
  const program = await compileSources(directory.path, `stress-${sanitizer}`, library, {
    flags: [
      ...['-O1', '-g', '-fno-omit-frame-pointer', `-fsanitize=${sanitizer}`],
      ...['-I', projectFile('native/addon/src')],
    ],
    more: [join(import.meta.dir, 'stress.cpp')],
    without: ['addon.cpp', 'javascript_values.cpp'],
  });
  process.stdout.write(`-fsanitize=${sanitizer}\n`);
  const run = Bun.spawn([program, library.directory, model, seconds, ...seed], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if ((await run.exited) !== 0) process.exitCode = 1;
}
