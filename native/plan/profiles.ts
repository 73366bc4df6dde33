import { CODES_V1 } from './codes-v1.ts';
import { MARKERS_V1 } from './markers-v1.ts';
import type { RegisteredProfile } from './profile.ts';
import type { Vocabulary } from './vocabulary.ts';

/** All profiles, the most special first; the last one fits any vocabulary. */
const PROFILES: readonly RegisteredProfile[] = [MARKERS_V1, CODES_V1];

/** Returns the first profile that fits the vocabulary. Throws if none does. */
export function profileFor(vocabulary: Vocabulary): RegisteredProfile {
  const found = PROFILES.find((profile) => profile.fits(vocabulary));
  if (found === undefined) throw new Error('No prompt profile fits its vocabulary.');
  return found;
}
