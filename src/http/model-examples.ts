import { DEFAULT_MODEL, DESCRIPTIONS, OWNED_BY } from '../catalog/catalog.ts';
import { MODES } from '../questions/question.ts';
import { OPTIONS_MAX } from '../questions/question-fields.ts';
import { BODY_BYTES_MAX } from './body-bytes.ts';
import type { Examples } from './route.ts';
import type { ListedModel, ModelList } from './schemas.ts';

/** Responses about models, for the API reference. */

const MODEL: ListedModel = {
  id: DEFAULT_MODEL,
  object: 'model',
  created: 1_793_491_200,
  owned_by: OWNED_BY,
  kind: 'decision',
  status: 'live',
  context_tokens: 16_384,
  price: { input: 0.5, output: 0 },
  modes: [...MODES],
  limits: {
    requests_per_minute: 300,
    tokens_per_minute: 300_000,
    questions_per_request: 32,
    options_per_question: OPTIONS_MAX,
    body_bytes: BODY_BYTES_MAX,
  },
};

const LIST: ModelList = {
  object: 'list',
  data: [MODEL],
  models: [{ name: DEFAULT_MODEL, description: DESCRIPTIONS.decision, release_date: '2026-11-01' }],
};

const SUMMARY = 'To a key of an organization on Tier 1';

export const MODEL_EXAMPLES: Examples = { live: { summary: SUMMARY, value: MODEL } };
export const MODEL_LIST_EXAMPLES: Examples = { live: { summary: SUMMARY, value: LIST } };
