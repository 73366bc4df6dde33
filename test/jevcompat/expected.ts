/**
 * The requirements of the open decision-request format that this service does not meet. All are SHOULDs, and each has
 * the rule of our contract that forbids it. The list is exact: one that is met, or another that is not, fails.
 */
export const UNMET: Readonly<Record<string, string>> = {
  'auth.missing': 'Error object: an error is `error` and `request_id`; it has no `detail`.',
  'auth.invalid': 'Error object: an error is `error` and `request_id`; it has no `detail`.',
  'errors.shape': 'Error object: an error is `error` and `request_id`; it has no `detail`.',
  'errors.validation-shape':
    'Codes: JSON that is none, and fields that are missing, are 400; Error object: no list of details.',
  'response.extensions':
    'Decision response body: `id`, `object`, `created`, `mode` and `latency_ms` have these names.',
  'confidence.formula': 'Answer: score: `confidence` is the probability of the most likely level.',
};

/** Requirements that apply to other services only: this one asks for a key. */
export const NOT_APPLICABLE: readonly string[] = ['auth.ignored-when-off'];
