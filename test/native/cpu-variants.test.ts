import { dlopen } from 'bun:ffi';
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Value } from '@sinclair/typebox/value';
import { findLibrary } from '../../native/addon/library.ts';
import { cpuLibraries } from '../../native/cpu-library.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { DecisionPlan, PromptProfile } from '../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { describeAddon } from './addon/support.ts';
import { VariantOutput } from './support/cpu-variant.ts';
import { distances, largestDistance } from './support/distances.ts';
import { llamaTokenizer } from './support/models.ts';
import { CONTEXT_TOKENS, pinnedScores, VECTORS, vectorInput } from './support/vectors.ts';
import { widened } from './support/widen.ts';

// A child reads the vectors four times; kernels for old CPUs take several times as long as those for new ones.
setDefaultTimeout(1_800_000);

/** How far any CPU may be from another with the same weights in 32 bits, where no activation is rounded. */
const WIDENED_TOLERANCE = 0.01;
/**
 * How far 8-bit weights may be from the pinned scores. They round activations to 8 bits, and with another order of
 * additions some fall to the other side. Each variant has an order of its own; what is lost shows in the mean as well.
 * Measured with the sixth version of decision-1: .056 in the mean at most.
 */
const ROUNDED_TOLERANCE = { most: 0.24, mean: 0.06 };

const ROOT = join(import.meta.dir, '..', '..');
const CHILD = join(import.meta.dir, 'support', 'cpu-variant-child.ts');

interface Variant {
  readonly path: string;
  /** ggml's own, by which it chooses: 0 where this CPU lacks an instruction. */
  readonly score: number;
}

/** The variant of x64 without SSE 4.2. Bun needs that, so that this one never serves. */
const BELOW_BUN = 'libggml-cpu-x64.so';

/** The variants of ggml's CPU backend in node-llama-cpp's package that can serve. Each system but Linux has one. */
function variants(): readonly Variant[] {
  const directory = process.platform === 'linux' ? findLibrary(false)?.directory : undefined;
  if (directory === undefined) return [];
  return readdirSync(directory)
    .filter((name) => name.startsWith('libggml-cpu-') && name !== BELOW_BUN)
    .map((name) => {
      const path = join(directory, name);
      const library = dlopen(path, { ggml_backend_score: { args: [], returns: 'i32' } });
      const score = library.symbols.ggml_backend_score();
      library.close();
      return { path, score };
    });
}

/** Of the mode that reads each record once: kernels for old CPUs are slow. */
const ASKED = VECTORS.filter(({ mode }) => mode === 'fast');
const PINNED = ASKED.flatMap(pinnedScores).flat();

/** Of weights in 32 bits no mean is asked, and each kernel is at work in each request. */
function askedWidened<Request>(requests: readonly Request[]): readonly Request[] {
  return requests.filter((_, index) => index % 6 === 0);
}

async function run(command: readonly string[], input = ''): Promise<string> {
  const options = { cwd: ROOT, stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe' } as const;
  const child = Bun.spawn([process.execPath, ...command], options);
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect({ code: await child.exited, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

const runnable = variants().filter(({ score }) => score > 0);
const highest = Math.max(...runnable.map(({ score }) => score));
const best = runnable.filter(({ score }) => score === highest);

// Outside of Linux node-llama-cpp ships one variant, which the other tests hold against the vectors.
(runnable.length === 0 ? describe.skip : describeAddon)(
  "ggml's kernels for the kinds of CPU that this one can stand for",
  () => {
    let profile: PromptProfile;
    let requests: readonly DecisionPlan[];
    let work: string;
    /** Of the variant that serves here. */
    let served: Awaited<ReturnType<typeof ask>>;
    beforeAll(async () => {
      const rounded = await verifyWeights(EMBEDDED_WEIGHTS);
      const in_32_bits = await verifyWeights(await widened(rounded));
      const { tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS);
      profile = markersV1(tokenizer);
      requests = await Promise.all(
        ASKED.map(vectorInput).map(async (input) => ({
          ...(await profile.plan(input, CONTEXT_TOKENS)),
          input,
        })),
      );
      await tokenizer.close();
      const plans = requests.map((request) => request.plans);
      work = JSON.stringify({
        rounded: { weights: rounded, requests: plans },
        widened: { weights: in_32_bits, requests: askedWidened(plans) },
      });
      served = await ask(best[0]?.path ?? '');
    });

    /** The backends of a process with that library, and the scores of both models through both evaluators. */
    async function ask(library: string) {
      const output = Value.Decode(VariantOutput, JSON.parse(await run([CHILD, library], work)));
      const scores = (asked: typeof requests, { addon, llama }: typeof output.rounded) => {
        const of = (logits: typeof addon) =>
          asked.flatMap(({ input, plans }, index) =>
            profile.scores(input, plans, logits[index] ?? []).flat(),
          );
        return { addon: of(addon), llama: of(llama) };
      };
      return {
        libraries: output.libraries,
        rounded: scores(requests, output.rounded),
        widened: scores(askedWidened(requests), output.widened),
      };
    }

    test.each(runnable.map(({ path }) => [basename(path), path] as const))(
      '%s gives the pinned scores through both evaluators',
      async (name, path) => {
        const { libraries, rounded, widened } = path === best[0]?.path ? served : await ask(path);
        // A second one beside it would leave open which of them has computed.
        expect(libraries).toEqual([name]);
        for (const evaluator of ['addon', 'llama'] as const) {
          const each = distances(rounded[evaluator], PINNED);
          expect(Math.max(...each)).toBeLessThanOrEqual(ROUNDED_TOLERANCE.most);
          const mean = each.reduce((sum, one) => sum + one, 0) / each.length;
          expect(mean).toBeLessThanOrEqual(ROUNDED_TOLERANCE.mean);
          expect(largestDistance(widened[evaluator], served.widened.llama)).toBeLessThanOrEqual(
            WIDENED_TOLERANCE,
          );
        }
      },
    );

    test('the variant of the highest score is the one that serves', async () => {
      const script = `
        const { addonStatus } = await import('./native/evaluators/addon/addon-status.ts');
        const { loadedCpuLibrary } = await import('./native/cpu-library.ts');
        await addonStatus(false);
        console.log(loadedCpuLibrary());
      `;
      expect(best.map(({ path }) => basename(path))).toContain((await run(['-e', script])).trim());
    });
  },
);

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
