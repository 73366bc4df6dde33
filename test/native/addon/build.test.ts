import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { addonStatus } from '../../../native/addon/index.ts';
import { bundlePath, extractLlamaSources } from '../../../native/addon/llama-sources.ts';
import { temporaryDirectory } from '../support/models.ts';
import { describeAddon } from './support.ts';

setDefaultTimeout(180_000);

const SCRIPT = join(import.meta.dir, '..', '..', '..', 'native', 'addon', 'build.ts');

test('without a compiler the build says so', async () => {
  const run = Bun.spawn([process.execPath, SCRIPT, '--sanitize=address'], {
    env: { PATH: '' },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  expect(await new Response(run.stderr).text()).toBe('There is no C++ compiler: install g++ or clang++.\n');
  expect(await run.exited).toBe(1);
});

test("llama.cpp's headers come out of node-llama-cpp's bundle whole", async () => {
  await using directory = await temporaryDirectory();
  await extractLlamaSources(bundlePath(), directory.path);
  for (const [name, declared] of [
    ['llama.h', 'llama_decode('],
    ['ggml.h', 'ggml_mul_mat('],
    ['ggml-backend.h', 'ggml_backend_graph_compute '],
    ['gguf.h', 'gguf_init_from_file('],
  ] as const) {
    const header = await Bun.file(join(directory.path, name)).text();
    expect({ name, declares: header.includes(declared) }).toEqual({ name, declares: true });
  }
  const truncated = join(directory.path, 'truncated.bundle');
  await Bun.write(truncated, (await Bun.file(bundlePath()).bytes()).subarray(0, 1 << 20));
  await expect(extractLlamaSources(truncated, directory.path)).rejects.toThrow();
  await Bun.write(truncated, 'something else');
  await expect(extractLlamaSources(truncated, directory.path)).rejects.toThrow('is not a git bundle');
});

describeAddon('the addon is built once', () => {
  test('and its place is known', async () => {
    const [status, again] = await Promise.all([addonStatus(false), addonStatus(false)]);
    expect(status).toEqual(again);
    if (!status.available) throw new Error(status.reason);
    expect(existsSync(status.addon_path)).toBe(true);
    expect(existsSync(status.library_directory)).toBe(true);
  });
});
