import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { chmod, cp, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { bundlePath, extractLlamaSources } from '../../../native/addon/llama-sources.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_MARKERS } from '../support/models.ts';
import { describeAddon } from './support.ts';

setDefaultTimeout(180_000);

const ROOT = join(import.meta.dir, '..', '..', '..');

/** Copies the sources without models and builds, and returns the copy's `native`. */
async function copySources(directory: string): Promise<string> {
  const native = join(directory, 'native');
  await cp(join(ROOT, 'native'), native, {
    recursive: true,
    filter: (path) => !path.startsWith(join(ROOT, 'native', 'models')),
  });
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  // Files are found from the nearest package.json of their real path, so that a link would lead out of the copy.
  await cp(join(ROOT, 'src'), join(directory, 'src'), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(directory, 'package.json'));
  return native;
}

test('without a compiler the build says so', async () => {
  await using directory = await temporaryDirectory();
  const run = Bun.spawn([process.execPath, join(await copySources(directory.path), 'addon', 'build.ts')], {
    env: { PATH: '' },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  expect(await new Response(run.stderr).text()).toBe('There is no C++ compiler: install g++ or clang++.\n');
  expect(await run.exited).toBe(1);
});

/**
 * The script in place of the compiler, and the builds that one start and a second one have begun. Each start needs the
 * addon twice. The script notes its calls in the file CALLS.
 */
const COMPILERS: readonly (readonly [string, string | undefined, number, number])[] = [
  ['no compiler', undefined, 0, 0],
  ['a compiler that refuses the sources', '#!/bin/sh\necho call >> CALLS\nexit 1\n', 1, 1],
  ['a compiler that the system cannot run', '#!/missing/interpreter\n', 2, 4],
  ['a compiler that is killed', '#!/bin/sh\nkill -KILL $$\n', 2, 4],
  ['a compiler that writes nothing', '#!/bin/sh\n', 2, 4],
];

test.each(COMPILERS)(
  'with %s models are served through llama, and only refused sources are not built again',
  async (_, script, first_builds, all_builds) => {
    await using directory = await temporaryDirectory();
    const native = await copySources(directory.path);
    const model_path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(model_path, TINY_MARKERS);
    const calls = join(directory.path, 'calls');
    await Bun.write(calls, '');
    const PATH = join(directory.path, 'compilers');
    if (script !== undefined) {
      await Bun.write(join(PATH, 'c++'), script.replace('CALLS', calls));
      await chmod(join(PATH, 'c++'), 0o755);
    }
    const source = `
    const { openEngine } = await import(${JSON.stringify(join(native, 'engine.ts'))});
    const given = { model_path: ${JSON.stringify(model_path)}, gpu: false, context_tokens: 512 };
    let begun = 0;
    const open = async () => {
      const engine = await openEngine({ ...given, onBuild: () => { begun += 1; } });
      await engine.close();
      const calls = await Bun.file(${JSON.stringify(calls)}).text();
      return { evaluator: engine.facts.evaluator, begun, calls };
    };
    console.log(JSON.stringify([await open(), await open()]));
  `;
    const child = Bun.spawn([process.execPath, '-e', source], {
      env: { PATH },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ code: await child.exited, errors }).toEqual({ code: 0, errors: '' });
    const [first, again] = JSON.parse(output);
    expect(first).toMatchObject({ evaluator: 'llama', begun: first_builds });
    expect(again).toEqual({ ...first, begun: all_builds });
  },
);

test('a service that is stopped while the addon is compiled ends the compiler, and does not wait for it', async () => {
  await using directory = await temporaryDirectory();
  await copySources(directory.path);
  await cp(join(ROOT, 'db'), join(directory.path, 'db'), { recursive: true });
  const model_path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(model_path, TINY_MARKERS);
  const compiling = join(directory.path, 'compiling');
  const PATH = join(directory.path, 'compilers');
  // The process that the compiler begins keeps its output open, as one of g++ does.
  await Bun.write(join(PATH, 'c++'), `#!/bin/sh\n/bin/sleep 60 &\necho $! >> ${compiling}\nwait\n`);
  await chmod(join(PATH, 'c++'), 0o755);
  const serve = ['serve', '--init', '--port', '0', '--gpu', 'none', '--model', model_path];
  const child = Bun.spawn(
    [
      ...[process.execPath, join(directory.path, 'src', 'main.ts'), ...serve],
      ...['--data', join(directory.path, 'data')],
    ],
    { env: { PATH }, stdout: 'pipe', stderr: 'pipe' },
  );
  const output = new Response(child.stdout).text();
  await eventually(() => Bun.file(compiling).size > 0);
  child.kill('SIGTERM');
  const messages = (await output).trimEnd().split('\n');
  expect(await child.exited).toBe(0);
  for (const id of (await readFile(compiling, 'utf8')).trim().split('\n')) process.kill(Number(id));
  expect(messages.map((line) => JSON.parse(line).msg)).toEqual([
    'stopping: the start is given up',
    'stopped',
  ]);
  expect(await readdir(join(directory.path, 'build', 'addon'))).toEqual([]);
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

describeAddon('an addon that the disk has lost', () => {
  /** A copy of the sources with a build folder of its own, and a compiler that copies an addon and counts its calls. */
  async function copiedSources(directory: string) {
    const status = await addonStatus(false);
    if (!status.available) throw new Error(status.reason);
    const native = await copySources(directory);
    const compiled = join(directory, 'compiled.node');
    await cp(status.addon_path, compiled);
    const calls = join(directory, 'calls');
    await Bun.write(calls, '');
    const compiler = join(directory, 'c++');
    await Bun.write(
      compiler,
      // A call without "-c" links what was compiled.
      `#!/bin/sh\ncase " $* " in *" -c "*) ;; *) echo call >> ${calls} ;; esac\nfor last; do :; done\n/bin/cp ${compiled} "$last"\n`,
    );
    await chmod(compiler, 0o755);
    /** Resolves with two results of one process: `both` is JavaScript that gets them. */
    const statuses = async (
      PATH: string,
      both: string,
    ): Promise<readonly { addon_path: string; reason?: string }[]> => {
      const script = `
        const { addonStatus } = await import(${JSON.stringify(join(native, 'evaluators', 'addon', 'addon-status.ts'))});
        console.log(JSON.stringify(${both}));
      `;
      const child = Bun.spawn([process.execPath, '-e', script], { env: { PATH }, stdout: 'pipe' });
      const output = await new Response(child.stdout).text();
      expect(await child.exited).toBe(0);
      return JSON.parse(output);
    };
    return {
      compiled,
      /** Resolves with the results without a compiler, and after one is installed. */
      loadThenInstall: async () => {
        const PATH = join(directory, 'later');
        const install = `require('node:fs').cpSync(${JSON.stringify(directory)} + '/c++', ${JSON.stringify(PATH)} + '/c++')`;
        return await statuses(PATH, `[await addonStatus(false), (${install}, await addonStatus(false))]`);
      },
      /** Resolves with the results of two concurrent callers, and the total number of compilations. */
      load: async (PATH = directory) => {
        const [status, again] = await statuses(
          PATH,
          'await Promise.all([addonStatus(false), addonStatus(false)])',
        );
        expect(again).toEqual(status);
        return { status, compilations: (await readFile(calls, 'utf8')).split('\n').length - 1 };
      },
    };
  }

  test('is built again once, and stays where it cannot be', async () => {
    await using directory = await temporaryDirectory();
    const { load, loadThenInstall, compiled } = await copiedSources(directory.path);
    const first = await load();
    expect(first).toMatchObject({ status: { available: true }, compilations: 1 });
    expect(await load()).toEqual(first);
    const path = first.status?.addon_path ?? '';
    expect(path).toStartWith(directory.path);

    await Bun.write(path, '');
    expect(await load()).toEqual({ ...first, compilations: 2 });
    await Bun.write(path, 'not a library');
    expect(await load()).toEqual({ ...first, compilations: 3 });
    expect(await load()).toEqual({ ...first, compilations: 3 });

    await Bun.write(path, 'not a library');
    const without_compiler = await load('');
    expect(without_compiler.status).toMatchObject({
      available: false,
      reason: 'There is no C++ compiler: install g++ or clang++.',
    });
    expect(await Bun.file(path).text()).toBe('not a library');

    const without_at_first = await loadThenInstall();
    expect(without_at_first).toMatchObject([{ available: false }, { available: true }]);

    await Bun.write(path, 'not a library');
    await Bun.write(compiled, 'not a library either');
    const unusable = await load();
    expect(unusable).toMatchObject({
      status: { available: false, reason: `The addon ${path} could not be loaded.` },
      compilations: 5,
    });
  });
});
