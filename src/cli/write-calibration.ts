import type { Calibration } from '../../native/engine.ts';
import { writeWholeFile } from './write-whole-file.ts';

/** A calibration, not yet bound to its weights. */
export type FittedCalibration = Pick<Calibration, 'temperatures' | 'fitted_on'>;

/**
 * Writes a file that appears only once it is complete, because the model would not load with half a
 * calibration.
 */
export async function writeCalibration(path: string, calibration: Calibration): Promise<void> {
  await writeWholeFile(path, `${JSON.stringify(calibration, null, 2)}\n`);
}
