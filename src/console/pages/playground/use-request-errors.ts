import { useState } from 'preact/hooks';
import { objectIn } from '../object-in.ts';
import { complaintsAbout, type Draft, draftOf, emptyPartsOf } from './draft.ts';
import type { WrittenRequest } from './use-request.ts';
import type { Comparison } from './use-runs.ts';

const NO_ERRORS: ReadonlyMap<string, string> = new Map();

/** The errors of a request, by the names of its fields. They are shown once it was tried, until it is changed. */
export function useRequestErrors({ draft, json }: WrittenRequest, comparison: Comparison | undefined) {
  /** The last request, sent or refused: errors belong to its fields. */
  const [tried, setTried] = useState<Draft | string>();
  const written = json ?? draft;
  return {
    errors: tried === written ? errorsOf(draft, comparison, json) : NO_ERRORS,
    /** True if the request cannot be asked as it is. */
    has_complaints: complaintsOf(draft, json).size > 0,
    markTried: () => setTried(written),
  };
}

/** Returns the errors of the last request, by the names of fields. */
function errorsOf(
  draft: Draft,
  comparison: Comparison | undefined,
  json: string | null,
): ReadonlyMap<string, string> {
  const failed = comparison?.runs.find(({ outcome }) => outcome.state === 'failed')?.outcome;
  const error = failed?.state === 'failed' ? failed.error : undefined;
  if (json !== null) {
    if (objectIn(json) === null) return new Map([['request', 'This is not a JSON object.']]);
    const complaints = complaintsOf(draft, json);
    if (complaints.size > 0) return complaints;
    return error?.param == null ? NO_ERRORS : new Map([['request', `${error.param}: ${error.message}`]]);
  }
  const complaints = complaintsAbout(draft);
  if (complaints.size > 0 || error?.param == null) return complaints;
  return new Map([[fieldOf(draft, error.param), error.message]]);
}

/** Returns the field of a path of the request. */
function fieldOf({ questions }: Draft, param: string): string {
  for (const { key, id } of questions) {
    if (param === `questions.${id}.type`) return `type-${key}`;
    if (param === `questions.${id}.criteria`) return `criteria-${key}`;
  }
  return param;
}

/** Complaints that keep the request from being asked, however it is edited. */
function complaintsOf(draft: Draft, json: string | null): ReadonlyMap<string, string> {
  if (json === null) return complaintsAbout(draft);
  const body = objectIn(json);
  const read = body === null ? 'This is not a JSON object.' : draftOf(body);
  // The service refuses what the form cannot show.
  if (typeof read === 'string') return NO_ERRORS;
  const [complaint] = emptyPartsOf(read.draft).values();
  return complaint === undefined ? NO_ERRORS : new Map([['request', complaint]]);
}
