import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkWeights } from '../../src/cli/check-weights.ts';
import { CommandFailed } from '../../src/cli/command-failed.ts';
import { exitCodeOf } from '../../src/cli/interruptible.ts';
import { WEIGHTS_TRIAL } from '../../src/cli/weights-trial.ts';
import { eventually } from '../support/eventually.ts';
import { MAIN } from '../support/program.ts';
import { rejection } from '../support/rejection.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { initializeData } from './support.ts';

setDefaultTimeout(120_000);

const config = {
  gpu: false,
  evaluator: 'auto',
  deterministic: false,
  threads: 'auto',
  prefixCache: undefined,
} as const;

/** Makes weights whose opening blocks until somebody writes. */
function endlessWeights(folder: string): string {
  const path = join(folder, 'endless.gguf');
  expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
  return path;
}

/** The process of the trial that a process has started, by default this one; undefined where there is none. */
function trialProcess(starter = process.pid): number | undefined {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((pid) => {
      try {
        const [, parent] = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return Number(parent) === starter && words.includes(WEIGHTS_TRIAL);
      } catch {
        // It has ended meanwhile.
        return false;
      }
    });
  return found === undefined ? undefined : Number(found);
}

describe.skipIf(process.platform !== 'linux')('a trial of weights', () => {
  test('whose load does not end is given up at the deadline, with a sentence', async () => {
    using directory = temporaryDirectory();
    const path = endlessWeights(directory.path);
    const given_up = await rejection(checkWeights(path, config, { is_silent: true, deadline_ms: 3_000 }));
    expect(given_up).toBeInstanceOf(CommandFailed);
    expect(String(given_up)).toEndWith(
      `The model ${path} cannot be served (it had not answered after 3 s): download it again, or give another model.`,
    );
  });

  test('that the system ends for lack of memory is no fault of the file', async () => {
    using directory = temporaryDirectory();
    const path = endlessWeights(directory.path);
    const ended = rejection(checkWeights(path, config, { is_silent: true }));
    await eventually(() => trialProcess() !== undefined);
    process.kill(trialProcess() ?? 0, 'SIGKILL');
    expect(String(await ended)).toEndWith(
      `The model ${path} cannot be served (the process that loaded it was ended by SIGKILL, probably for lack of memory): make room, or give a smaller model.`,
    );
  });

  test('ends with the command that started it, which a signal ends', async () => {
    using directory = temporaryDirectory();
    const data = join(directory.path, 'data');
    await initializeData(data);
    const words = ['--weights', endlessWeights(directory.path), '--price', '1', '--data', data];
    const command = Bun.spawn([process.execPath, MAIN, 'model', 'add', 'endless', ...words], {
      stderr: 'ignore',
    });
    await eventually(() => trialProcess(command.pid) !== undefined);
    const trial = trialProcess(command.pid) ?? 0;
    try {
      command.kill('SIGTERM');
      expect(await command.exited).toBe(exitCodeOf('SIGTERM'));
      await eventually(() => !isAlive(trial));
    } finally {
      if (isAlive(trial)) process.kill(trial, 'SIGKILL');
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
