import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { systemErrorCode } from '../src/errors/system-error-code.ts';
import { TypeTemperatures } from '../src/questions/temperatures.ts';
import { WeightsError } from './errors.ts';
import { EMBEDDED_WEIGHTS } from './weights.ts';

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** The cases on which a calibration was fitted, for people. */
const FittedOn = Type.Object(
  {
    /** SHA-256 of the cases' lines, uncompressed. */
    cases_sha256: Sha256,
    records: Type.Integer({ minimum: 1 }),
    questions: Type.Integer({ minimum: 1 }),
  },
  { additionalProperties: false },
);

/**
 * A fitted calibration, stored in a file beside the weights. Each mode has its own temperatures, because it
 * asks differently and has another confidence.
 */
export const Calibration = Type.Object(
  {
    profile: Type.String(),
    weights_sha256: Sha256,
    temperatures: Type.Object(
      { fast: TypeTemperatures, consistent: TypeTemperatures },
      { additionalProperties: false },
    ),
    fitted_on: Type.Object({ fast: FittedOn, consistent: FittedOn }, { additionalProperties: false }),
  },
  { additionalProperties: false },
);
export type Calibration = Static<typeof Calibration>;

/** Returns the path of the only calibration of a folder, which all weights in it without one of their own have. */
function sharedPath(first_part: string): string {
  return join(dirname(first_part), 'calibration.json');
}

/**
 * Returns the path to which the calibration of the weights whose first part is `first_part` is written. It has their
 * name, because other weights may lie in the folder.
 */
export function calibrationPath(first_part: string): string {
  if (dirname(resolve(first_part)) === dirname(EMBEDDED_WEIGHTS)) return sharedPath(first_part);
  const name = basename(first_part, '.gguf').replace(/-00001-of-\d{5}$/, '');
  return join(dirname(first_part), `${name}.calibration.json`);
}

/**
 * Resolves with the calibration beside the weights at `first_part`; undefined for none. Throws `WeightsError` when it
 * is malformed, or was fitted on another profile or on other weights.
 */
export async function readCalibration(
  first_part: string,
  profile: string,
  weights_sha256: string,
): Promise<Calibration | undefined> {
  let path = calibrationPath(first_part);
  let remedy = 'fit it again, or remove it';
  let content = await contentOf(path);
  if (content === undefined) {
    path = sharedPath(first_part);
    remedy =
      'fit it again, remove it, or rename it to NAME.calibration.json where it is that of other weights NAME.gguf beside it';
    content = await contentOf(path);
  }
  if (content === undefined) return undefined;
  const calibration = parseCalibration(content);
  if (calibration === undefined) {
    throw new WeightsError(`The calibration ${path} is not valid: fit it again, or remove it.`);
  }
  if (calibration.profile !== profile) {
    throw new WeightsError(
      `The calibration ${path} is for the profile ${calibration.profile} and not ${profile}: ${remedy}.`,
    );
  }
  if (calibration.weights_sha256 !== weights_sha256) {
    throw new WeightsError(`The calibration ${path} was fitted on other weights: ${remedy}.`);
  }
  return calibration;
}

/** Resolves with the text of a calibration; undefined where there is no such file. */
async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw new WeightsError(`The calibration ${path} cannot be read: make it readable, or remove it.`, {
      cause: error,
    });
  }
}

function parseCalibration(content: string): Calibration | undefined {
  try {
    const value: unknown = JSON.parse(content);
    return Value.Check(Calibration, value) ? value : undefined;
  } catch {
    // Nothing is lost: the caller refuses the file with advice.
    return undefined;
  }
}
