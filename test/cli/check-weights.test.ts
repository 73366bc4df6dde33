import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { checkWeights } from '../../src/cli/check-weights.ts';
import { CommandFailed } from '../../src/cli/command-failed.ts';
import { temporaryDirectory } from '../native/support/models.ts';
import { rejection } from '../support/rejection.ts';

setDefaultTimeout(120_000);

test.skipIf(process.platform !== 'linux')(
  'weights whose load does not end are given up at the deadline, with a sentence',
  async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'endless.gguf');
    // Opening it blocks until somebody writes.
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    const config = { gpu: false, evaluator: 'auto', deterministic: false } as const;
    const given_up = await rejection(
      checkWeights(
        path,
        { ...config, threads: 'auto', prefixCache: undefined },
        { is_silent: true, deadline_ms: 3_000 },
      ),
    );
    expect(given_up).toBeInstanceOf(CommandFailed);
    expect(String(given_up)).toEndWith(
      `The model ${path} cannot be served (it had not answered after 3 s): download it again, or give another model.`,
    );
  },
);
