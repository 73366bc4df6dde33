import { dlopen } from 'bun:ffi';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findLibrary } from '../../native/addon/library.ts';
import { cpuLibraries } from '../../native/cpu-library.ts';
import { describeAddon } from './addon/support.ts';

// A child reads every vector with both evaluators; kernels for old CPUs take several times as long.
setDefaultTimeout(300_000);

const ROOT = join(import.meta.dir, '..', '..');
const PRELOAD = join(import.meta.dir, 'support', 'force-cpu-library.ts');

interface Variant {
  readonly path: string;
  /** ggml's own, by which it chooses: 0 where this CPU lacks an instruction. */
  readonly score: number;
}

/** The variants of ggml's CPU backend in node-llama-cpp's package. Each system but Linux has one. */
function variants(): readonly Variant[] {
  const directory = process.platform === 'linux' ? findLibrary(false)?.directory : undefined;
  if (directory === undefined) return [];
  return readdirSync(directory)
    .filter((name) => name.startsWith('libggml-cpu-'))
    .map((name) => {
      const path = join(directory, name);
      const library = dlopen(path, { ggml_backend_score: { args: [], returns: 'i32' } });
      const score = library.symbols.ggml_backend_score();
      library.close();
      return { path, score };
    });
}

async function run(command: readonly string[], env: Record<string, string>) {
  const child = Bun.spawn([process.execPath, ...command], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, stdout, stderr };
}

const runnable = variants().filter(({ score }) => score > 0);

describeAddon("ggml's kernels for the kinds of CPU that this one can stand for", () => {
  test.each(runnable.map(({ path }) => [basename(path), path] as const))(
    'give the pinned scores through both evaluators: %s',
    async (_, path) => {
      const files = ['./test/native/vectors.test.ts', './test/native/addon/embedded.test.ts'];
      const { code, stderr } = await run(
        ['test', '--preload', PRELOAD, ...files, '-t', 'the pinned scores', '--timeout', '300000'],
        { TDS_TEST_CPU_LIBRARY: path, TDS_TEST_OWN_KERNELS: 'none' },
      );
      const failures = stderr.split('\n').filter((line) => /^\(fail\)|^error/.test(line));
      expect({ code, failures }).toEqual({ code: 0, failures: [] });
    },
  );

  test.skipIf(runnable.length === 0)('the variant of the highest score is the one that serves', async () => {
    const script = `
      const { addonStatus } = await import('./native/addon/index.ts');
      const { loadedCpuLibrary } = await import('./native/cpu-library.ts');
      await addonStatus(false);
      console.log(loadedCpuLibrary());
    `;
    const highest = Math.max(...runnable.map(({ score }) => score));
    const best = runnable.filter(({ score }) => score === highest).map(({ path }) => basename(path));
    expect(best).toContain((await run(['-e', script], {})).stdout.trim());
  });
});

test.skipIf(process.platform !== 'linux' || process.arch !== 'x64')(
  'a CPU with AVX2 can stand for those that have no more',
  () => {
    const has_avx2 = /^flags\s*:.*\bavx2\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'));
    const names = runnable.map(({ path }) => basename(path));
    expect(names.includes('libggml-cpu-haswell.so')).toBe(has_avx2);
  },
);

test('the backends of a process are told from its other files, each once', () => {
  const maps = [
    '7f0000000000-7f0000001000 r--p 00000000 08:01 11 /opt/bins/libggml-cpu-haswell.so',
    '7f0000001000-7f0000002000 r-xp 00001000 08:01 11 /opt/bins/libggml-cpu-haswell.so',
    '7f0000002000-7f0000003000 r--p 00000000 08:01 12 /opt/libggml-cpu-x/libggml-base.so',
    '7f0000003000-7f0000004000 rw-p 00000000 00:00 0 [heap]',
    '7f0000004000-7f0000005000 r--p 00000000 08:01 13 /a folder/libggml-cpu.so',
    '',
  ].join('\n');
  expect(cpuLibraries(maps)).toEqual(['/opt/bins/libggml-cpu-haswell.so', '/a folder/libggml-cpu.so']);
  expect(cpuLibraries('')).toEqual([]);
});
