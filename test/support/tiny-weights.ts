import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { MARKERS_V1_TOKENS } from '../../native/plan/markers-v1.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { tinyModelBytes } from '../native/support/gguf.ts';

/** As quick a model as the engine can load: a server with it starts in half the CPU time. */
function tinyWeights(): string {
  const bytes = tinyModelBytes({
    control: ['<|0|>', '<|1|>', '<|2|>', ...Object.keys(MARKERS_V1_TOKENS)],
    words: [],
    context_tokens: 16_384,
  });
  const path = projectFile(`build/tiny-models/${Bun.hash(bytes).toString(16)}.gguf`);
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    // Other processes of the tests may write it at the same time.
    const work = `${path}.${process.pid}`;
    writeFileSync(work, bytes);
    renameSync(work, path);
  }
  return path;
}

/** The file of a tiny model, for servers of which nobody asks how well they answer. Nothing writes to it. */
export const TINY_WEIGHTS = tinyWeights();
