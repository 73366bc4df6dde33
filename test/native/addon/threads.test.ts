import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { compilerPath } from '../../../native/addon/build.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_CHAT } from '../support/models.ts';
import { describeAddon } from './support.ts';

// The addon is built first where it is not yet.
setDefaultTimeout(180_000);

const SUPPORT = join(import.meta.dir, '..', 'support');

const ADDON = join(import.meta.dir, '..', '..', '..', 'native', 'evaluators', 'addon');

/** Opens an engine, then a tokenizer with which a long text is tokenized, and closes them; prints what came of it. */
const SCRIPT = `
  const { createAddonEvaluator } = await import(${JSON.stringify(join(ADDON, 'addon-evaluator.ts'))});
  const { createAddonTokenizer } = await import(${JSON.stringify(join(ADDON, 'addon-tokenizer.ts'))});
  try {
    const evaluator = await createAddonEvaluator({ model_path: process.env.MODEL, context_tokens: 512, gpu: false, threads: 1 });
    const tokenizer = await createAddonTokenizer({ model_path: process.env.MODEL, gpu: false });
    const [tokens] = await tokenizer.tokenize(['word '.repeat(1000)]).catch((error) => [error]);
    console.log(tokens instanceof Error ? tokens.name + ': ' + tokens.message : 'answered');
    await tokenizer.close();
    await evaluator.close();
  } catch (error) {
    console.log(error.name + ': ' + error.message);
  }
`;

describeAddon('where the system starts no more threads', () => {
  const is_linux = process.platform === 'linux';
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let library: string;
  let model: string;

  beforeAll(async () => {
    directory = await temporaryDirectory();
    library = join(directory.path, 'few-threads.so');
    model = join(directory.path, 'tiny.gguf');
    await writeTinyModel(model, { ...TINY_CHAT, pre_tokenizer: 'tekken' });
    if (!is_linux) return;
    const source = join(SUPPORT, 'few-threads.cpp');
    const flags = ['-std=c++17', '-shared', '-fPIC', source, '-ldl', '-o', library];
    expect(await Bun.spawn([compilerPath() ?? 'c++', ...flags]).exited).toBe(0);
  });
  afterAll(() => directory[Symbol.asyncDispose]());

  test.skipIf(!is_linux).each([
    [
      'of the engine',
      1,
      'EvaluationFailed: The model MODEL cannot be used: The system starts no more threads.',
    ],
    [
      'of the vocabulary',
      2,
      'EvaluationFailed: The vocabulary of MODEL cannot be used: The system starts no more threads.',
    ],
    [
      'of the tokenizer',
      3,
      'EvaluationFailed: The vocabulary of MODEL cannot be used: the system starts no more threads.',
    ],
    ['for a long text', 4, 'EvaluationFailed: a thread could not be started'],
    ['after all that are needed', 100, 'answered'],
  ])('a thread %s is refused with a sentence', async (_, number, expected) => {
    const child = Bun.spawn([process.execPath, '-e', SCRIPT], {
      env: { ...process.env, LD_PRELOAD: library, FAIL_THREAD: `${number}`, MODEL: model },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ code: await child.exited, output: output.replace(model, 'MODEL').trim(), errors }).toEqual({
      code: 0,
      output: expected,
      errors: '',
    });
  });
});
