import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Calibration } from '../../native/engine.ts';
import { CommandFailed } from './command-failed.ts';

/** A calibration, not yet bound to its weights. */
export type FittedCalibration = Pick<Calibration, 'temperatures' | 'fitted_on'>;

/**
 * Writes a file that appears only once it is complete, because the model would not load with half a
 * calibration.
 */
export async function writeCalibration(path: string, calibration: Calibration): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  try {
    await writeFile(partial, `${JSON.stringify(calibration, null, 2)}\n`);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw new CommandFailed(`${path} cannot be written: name another file with --output.`, { cause: error });
  }
}
