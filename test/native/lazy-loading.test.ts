import { expect, test } from 'bun:test';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '..', '..');

/** The files that a process has loaded after it imported one of ours. */
async function loadedBy(path: string): Promise<readonly string[]> {
  const script = `
    await import(${JSON.stringify(join(ROOT, path))});
    console.log(JSON.stringify(Object.keys(require.cache)));
  `;
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return JSON.parse(output);
}

const NODE_LLAMA_CPP = /\/node-llama-cpp\//;
const ADDON = /\/native\/(addon|evaluators\/addon)\//;

test.each(['native/engine.ts', 'src/cli/program.ts'])(
  '%s loads neither node-llama-cpp nor the addon before a model is opened',
  async (path) => {
    const files = await loadedBy(path);
    expect(files.some((file) => file.endsWith(path))).toBe(true);
    expect(files.filter((file) => NODE_LLAMA_CPP.test(file) || ADDON.test(file))).toEqual([]);
  },
);

test('what opens a model loads both: the files are seen', async () => {
  const files = await loadedBy('native/load-engine.ts');
  expect(files.some((file) => NODE_LLAMA_CPP.test(file))).toBe(true);
  expect(files.some((file) => ADDON.test(file))).toBe(true);
});
