import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Calibration } from '../../native/engine.ts';
import { CommandFailed } from './command-failed.ts';

/** A calibration without what it is bound to. */
export type FittedCalibration = Pick<Calibration, 'temperatures' | 'fitted_on'>;

/** Writes a file that appears only when it is whole: a half calibration would keep the model from loading. */
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
