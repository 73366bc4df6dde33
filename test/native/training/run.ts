import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import { ROOT } from '../../architecture/source-files.ts';
import { MAIN } from '../../support/program.ts';
import { PythonMissing } from '../../support/python-program.ts';
import { PYTHON, pythonEnvironment, runPython, TRAINING } from './support.ts';

/**
 * Trains as a person would who has nothing but PyPI: the base, twenty steps on forty records, a stop in the middle, the
 * export, `tds eval` on it, and fine-tuning of that on cases. Python's packages are kept in a temporary folder of this
 * machine; where they cannot be installed, the run is skipped and says so.
 */

const INSTALL_LIMIT_MS = 150_000;
/** CPU builds of PyTorch, where PyPI has those for CUDA of several GB. */
const CPU_WHEELS = 'https://download.pytorch.org/whl/cpu';
const STEPS_MIN = 20;
/** The first two layers are trained in seconds. */
const SMALL_RUN = [
  '--layers',
  '2',
  '--batch-tokens',
  '600',
  '--pool-records',
  '40',
  '--million-tokens',
  '0.011',
];
/** One thread adds numbers in one order, so that runs can be compared bit by bit. */
const ONE_THREAD = ['--threads', '1'];
/** The service rounds weights and activations to 8 bits. */
const NLL_TOLERANCE = 0.03;

const Project = Type.Object({ project: Type.Object({ dependencies: Type.Array(Type.String()) }) });
const Nll = Type.Record(Type.String(), Type.Object({ nll: Type.Number() }));
const Report = Type.Object({ before: Nll, after: Nll });
const Estimate = Type.Object({ value: Type.Number() });
const Evaluation = Type.Object({
  uncalibrated: Type.Object({
    types: Type.Array(
      Type.Object({ type: Type.String(), metrics: Type.Object({ negative_log_likelihood: Estimate }) }),
    ),
  }),
});

/** The Python of an environment with the packages that `pyproject.toml` pins, made once for a machine. */
async function environment(): Promise<string> {
  if (PYTHON === null) throw new PythonMissing('there is no python3 of version 3.11 or newer.');
  const project = Bun.TOML.parse(await readFile(join(TRAINING, 'pyproject.toml'), 'utf8'));
  const { dependencies } = Value.Decode(Project, project).project;
  const folder = join(tmpdir(), `tds-training-${Bun.hash(`${PYTHON} ${dependencies}`).toString(36)}`);
  const python = join(folder, 'bin/python');
  const ready = join(folder, 'ready');
  if (existsSync(ready)) return python;
  mkdirSync(folder, { recursive: true });
  await install([PYTHON, '-m', 'venv', '--clear', folder]);
  const wheels = (await isReachable(CPU_WHEELS)) ? ['--extra-index-url', CPU_WHEELS] : [];
  // Compiling all of PyTorch takes longer than what is imported of it.
  await install([python, '-m', 'pip', 'install', '--quiet', '--no-compile', ...wheels, ...dependencies]);
  await Bun.write(ready, '');
  return python;
}

/** pip would try an index that is not there for minutes. */
async function isReachable(index: string): Promise<boolean> {
  try {
    return (await fetch(`${index}/`, { signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

async function install(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdout: 'ignore', stderr: 'inherit', timeout: INSTALL_LIMIT_MS });
  if ((await child.exited) === 0) return;
  throw new PythonMissing(
    `"${command.join(' ')}" did not succeed within ${INSTALL_LIMIT_MS / 1000} seconds.`,
  );
}

/** Forty records, each with a question of every type whose answer can be read in it. */
function records(): readonly string[] {
  return Array.from({ length: 40 }, (_, number) => {
    const is_billing = number % 2 === 0;
    const said = is_billing
      ? 'I was charged twice, please refund me.'
      : 'The app does not start after the update.';
    const urgency = number % 3;
    return JSON.stringify({
      src: 'tickets',
      state: `Order ${1000 + 37 * number}: ${said} ${['Take your time.', 'This week, please.', 'I need it today.'][urgency]}`,
      questions: [
        { type: 'noul', instructions: 'Is it about money?', answer: is_billing },
        {
          type: 'choice',
          instructions: 'Which team?',
          criteria: { billing: 'payments', technical: null },
          answer: is_billing ? 'billing' : 'technical',
        },
        {
          type: 'score',
          instructions: 'How urgent?',
          criteria: ['can wait', 'this week', 'today'],
          answer: urgency,
        },
      ],
    });
  });
}

/** Runs a command of the training code that must succeed, and returns what it printed. */
async function training(python: string, args: readonly string[]): Promise<string> {
  console.log(`python -m decision_training ${args.join(' ')}`);
  const { code, stdout, stderr } = await runPython(python, ['-m', 'decision_training', ...args]);
  process.stdout.write(stdout);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** Runs a command of the training code that must end with one sentence of this pattern. */
async function refused(python: string, args: readonly string[], sentence: string): Promise<void> {
  const { code, stderr } = await runPython(python, ['-m', 'decision_training', ...args]);
  assert.equal(code, 1, stderr);
  assert.match(stderr, new RegExp(`^decision_training: ${sentence}\n$`));
}

/** Trains until the first step is done, asks the run to stop, and waits for its checkpoint. */
async function stoppedTraining(python: string, args: readonly string[]): Promise<void> {
  const child = Bun.spawn([python, '-m', 'decision_training', ...args], {
    env: pythonEnvironment(),
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let said = '';
  const decoder = new TextDecoder();
  for await (const piece of child.stdout) {
    said += decoder.decode(piece);
    if (said.includes('step 1 ')) child.kill('SIGTERM');
  }
  assert.equal(await child.exited, 0);
  assert.match(said, /Stopped; `resume \S+` goes on\./);
}

/** The mean negative log-likelihood of each type by `tds eval`. */
async function evaluated(cases: string, model: string, output: string): Promise<ReadonlyMap<string, number>> {
  const command = ['eval', cases, '--model', model, '--output', output, '--probes', '0', '--json'];
  const child = Bun.spawn([process.execPath, MAIN, ...command], { stdout: 'pipe', stderr: 'inherit' });
  const report = await new Response(child.stdout).text();
  assert.equal(await child.exited, 0);
  const { types } = Value.Decode(Evaluation, JSON.parse(report)).uncalibrated;
  return new Map(types.map(({ type, metrics }) => [type, metrics.negative_log_likelihood.value]));
}

/** The only GGUF file in a folder: weights of two layers make one part. */
function exportedPart(folder: string): string {
  const [name, ...others] = readdirSync(folder).filter((file) => file.endsWith('.gguf'));
  assert.ok(name !== undefined && others.length === 0);
  return join(folder, name);
}

/** A run that is stopped and goes on ends with the weights of one that was not; returns their file. */
async function trainedWeights(python: string, directory: string, base: string): Promise<string> {
  const prepared = join(directory, 'prepared');
  await writeFile(join(directory, 'records.jsonl'), `${records().join('\n')}\n`);
  await training(python, ['prepare', base]);
  await training(python, ['prepare', prepared, '--records', join(directory, 'records.jsonl'), '--no-base']);
  const from = ['--from', join(base, 'base.gguf'), '--records', join(prepared, 'records.jsonl')];
  const whole = await training(python, [
    'train',
    join(directory, 'whole'),
    ...from,
    ...SMALL_RUN,
    ...ONE_THREAD,
  ]);
  const steps = Number(/step (\d+) {2}100\.0%/.exec(whole)?.[1]);
  assert.ok(steps >= STEPS_MIN, `${steps} steps`);
  await stoppedTraining(python, ['train', join(directory, 'stopped'), ...from, ...SMALL_RUN, ...ONE_THREAD]);
  await training(python, ['resume', join(directory, 'stopped'), ...ONE_THREAD]);
  const exported = await Promise.all(
    ['whole', 'stopped'].map(async (run) => {
      const folder = join(directory, `${run}-weights`);
      await training(python, ['export', join(directory, run), folder]);
      return exportedPart(folder);
    }),
  );
  const [first = '', second = ''] = exported;
  assert.ok((await readFile(first)).equals(await readFile(second)), 'a stop in between changed the weights');
  return first;
}

/** Prints the layers whose matrices differ between two GGUF files, and the ratio of their readouts' norms. */
const DIFFERENCES = `
import sys
from pathlib import Path
from numpy.linalg import norm
from decision_training.restore import read_model
one, other = (read_model(Path(path)).weights for path in sys.argv[1:])
print(*sorted({name.split(".")[1] for name in one if name.startswith("blk.") and (one[name] != other[name]).any()}))
print(norm(other["readout"]) / norm(one["readout"]))
`;

/** Returns the differences of two models: the numbers of the layers, and other's readout ÷ one's. */
async function differences(python: string, one: string, other: string): Promise<[string, number]> {
  const { code, stdout, stderr } = await runPython(python, ['-c', DIFFERENCES, one, other]);
  assert.equal(code, 0, stderr);
  const [layers = '', ratio = ''] = stdout.split('\n');
  return [layers, Number(ratio)];
}

/** A run leaves frozen layers as they are, and an export goes as much of the way to its weights as is asked for. */
async function checkContinuedRun(python: string, directory: string, weights: string): Promise<void> {
  const run = join(directory, 'continued');
  const from = ['--from', weights, '--records', join(directory, 'prepared', 'records.jsonl')];
  await training(python, ['train', run, ...from, ...SMALL_RUN, '--frozen-layers', '1', ...ONE_THREAD]);
  const [none, all] = [join(directory, 'none'), join(directory, 'all')];
  await training(python, ['export', run, none, '--share', '0']);
  await training(python, ['export', run, all]);
  assert.ok(
    (await readFile(weights)).equals(await readFile(exportedPart(none))),
    'a share of 0 changed weights',
  );
  assert.equal((await differences(python, weights, exportedPart(all)))[0], '1', 'layers that changed');
  const cooler = join(directory, 'cooler');
  await training(python, ['export', run, cooler, '--temperature', '2']);
  const [layers, ratio] = await differences(python, exportedPart(all), exportedPart(cooler));
  assert.equal(layers, '', 'a temperature changed layers');
  assert.ok(Math.abs(ratio - 0.5) < 0.005, `a temperature of 2 made the readout ${ratio} of itself`);
}

/** Fine-tuning makes weights better on cases apart, by its own report and by `tds eval` alike. */
async function checkFinetuning(python: string, directory: string, weights: string): Promise<void> {
  const lines = records();
  const [cases, apart] = [join(directory, 'cases.jsonl'), join(directory, 'apart.jsonl')];
  await writeFile(cases, `${lines.slice(0, 28).join('\n')}\n`);
  await writeFile(apart, `${lines.slice(28).join('\n')}\n`);
  const folder = join(directory, 'finetuned');
  const told = ['--test', apart, '--model', weights, '--learning-rate', '1e-3', '--batch-tokens', '600'];
  const finetune = ['finetune', cases, folder, ...told, ...ONE_THREAD];
  await refused(python, [...finetune, '--validation-share', '1'], 'No record is left to train on: .+');
  // A file is in the way of the results; the training before it is kept.
  await writeFile(`${folder}.new`, '');
  await refused(python, finetune, '\\S+finetuned\\.new cannot be used \\(File exists\\)\\.');
  rmSync(`${folder}.new`);
  assert.match(await training(python, finetune), /^goes on in epoch/m);
  const report = Value.Decode(Report, JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')));
  const before = await evaluated(apart, weights, join(directory, 'before'));
  const after = await evaluated(apart, exportedPart(folder), join(directory, 'after'));
  for (const type of ['noul', 'choice', 'score']) {
    assertNear(before.get(type), report.before[type]?.nll, `${type} before`);
    assertNear(after.get(type), report.after[type]?.nll, `${type} after`);
  }
  assert.ok(
    (after.get('choice') ?? Number.NaN) < (before.get('choice') ?? Number.NaN) - 0.1,
    'choices are no better',
  );
}

function assertNear(measured: number | undefined, reported: number | undefined, what: string): void {
  const distance = Math.abs((measured ?? Number.NaN) - (reported ?? Number.NaN));
  assert.ok(distance <= NLL_TOLERANCE, `${what}: tds eval says ${measured}, the report ${reported}`);
}

/** The tokenizer and the network of the training code are those of the service, by the pinned vectors. */
async function checkVectors(python: string): Promise<void> {
  const vectors = await readFile(join(ROOT, 'test/native/plan/vectors.jsonl'), 'utf8');
  const command = [join(import.meta.dir, 'check_vectors.py'), EMBEDDED_WEIGHTS];
  const { code, stdout, stderr } = await runPython(python, command, vectors);
  assert.equal(code, 0, stderr);
  console.log(`The scores of the vectors are met within ${Number(stdout).toFixed(4)}.`);
}

const directory = mkdtempSync(join(tmpdir(), 'tds-training-run-'));
try {
  const python = await environment();
  await checkVectors(python);
  const weights = await trainedWeights(python, directory, join(python, '../../base'));
  await checkContinuedRun(python, directory, weights);
  await checkFinetuning(python, directory, weights);
  console.log('Training, stopping, resuming, exporting and fine-tuning work.');
} catch (error) {
  if (!(error instanceof PythonMissing)) throw error;
  console.log(`SKIPPED: the test of training: ${error.message}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
