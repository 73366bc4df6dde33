import type { Examples } from './route.ts';

/** Working requests for the API reference, and the responses of decision-1. A test sends them. */

const RECORD = 'I was charged twice for order 8812. Please give the second payment back.';

const OF_EACH_TYPE = {
  state: RECORD,
  questions: {
    refund: { type: 'noul', instructions: 'Does the customer ask for money back?', threshold: 0.9 },
    team: {
      type: 'choice',
      instructions: 'Which team should handle this message?',
      criteria: { billing: 'payments and refunds', technical: 'bugs and outages', sales: 'new purchases' },
    },
    urgency: {
      type: 'score',
      instructions: 'How urgent is it?',
      criteria: ['can wait', 'this week', 'today'],
    },
  },
};

const CONSISTENT = {
  state: { subject: 'Login', message: 'The page shows error 500. Nobody in our team can sign in.' },
  questions: { broken: { type: 'noul', instructions: 'Is something broken?' } },
  mode: 'consistent',
};

/** The questions of `OF_EACH_TYPE`, as the `openai` packages send them. */
const OPENAI = {
  input: RECORD,
  questions: [
    { type: 'predicate', name: 'refund', instructions: 'Does the customer ask for money back?' },
    {
      type: 'choice',
      name: 'team',
      instructions: 'Which team should handle this message?',
      choices: [
        { value: 'billing', description: 'payments and refunds' },
        { value: 'technical', description: 'bugs and outages' },
        { value: 'sales', description: 'new purchases' },
      ],
    },
    {
      type: 'score',
      name: 'urgency',
      instructions: 'How urgent is it?',
      levels: [{ label: 'can wait' }, { label: 'this week' }, { label: 'today' }],
    },
  ],
};

const OF_EACH_TYPE_ANSWER = {
  id: 'dec_gGKS4s1cjF4f1uJKP1ToGQPC',
  object: 'decision',
  created: 1_795_733_924,
  model: 'decision-1',
  mode: 'fast',
  answers: {
    refund: { type: 'noul', noul: 0.975538, threshold: 0.9, decision: true },
    team: {
      type: 'choice',
      choice: 'billing',
      probabilities: { billing: 0.971045, technical: 0.014412, sales: 0.014543 },
      confidence: 0.956567,
    },
    urgency: {
      type: 'score',
      score: 1.830774,
      probabilities: { 0: 0.050861, 1: 0.067504, 2: 0.881635 },
      legend: { 0: 'can wait', 1: 'this week', 2: 'today' },
      confidence: 0.881635,
    },
  },
  usage: { input_tokens: 78, output_tokens: 0, decisions: 3, cost_usd: 0.000039 },
  latency_ms: 111.387,
};

const CONSISTENT_ANSWER = {
  id: 'dec_OVLJyT24Ro114EVX1ATeJIbB',
  object: 'decision',
  created: 1_795_733_931,
  model: 'decision-1',
  mode: 'consistent',
  answers: { broken: { type: 'noul', noul: 0.973279 } },
  usage: { input_tokens: 30, output_tokens: 0, decisions: 1, cost_usd: 0.000015 },
  latency_ms: 67.45,
};

const OPENAI_ANSWER = {
  model: 'decision-1',
  answers: [
    { type: 'predicate', name: 'refund', probability: 0.975538 },
    {
      type: 'choice',
      name: 'team',
      choice: 'billing',
      confidence: 0.956567,
      probabilities: [
        { value: 'billing', probability: 0.971045 },
        { value: 'technical', probability: 0.014412 },
        { value: 'sales', probability: 0.014543 },
      ],
    },
    {
      type: 'score',
      name: 'urgency',
      score: 1.830774,
      confidence: 0.881635,
      probabilities: [
        { label: 'can wait', value: 0, probability: 0.050861 },
        { label: 'this week', value: 1, probability: 0.067504 },
        { label: 'today', value: 2, probability: 0.881635 },
      ],
    },
  ],
  usage: {
    input_tokens: 78,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 78,
    cost_usd: 0.000039,
  },
};

const MODEL = { model: 'decision-1' };
const SUMMARIES = {
  of_each_type: 'A question of each type',
  consistent: 'An object as the record, in consistent mode',
  openai: "OpenAI's shape",
  batch: 'A batch of one line',
};

export const SYSTEM_ONE_REQUESTS: Examples = {
  of_each_type: { summary: SUMMARIES.of_each_type, value: OF_EACH_TYPE },
  consistent: { summary: SUMMARIES.consistent, value: CONSISTENT },
};

export const SYSTEM_ONE_ANSWERS: Examples = {
  of_each_type: { summary: SUMMARIES.of_each_type, value: OF_EACH_TYPE_ANSWER },
  consistent: { summary: SUMMARIES.consistent, value: CONSISTENT_ANSWER },
};

export const DECISION_REQUESTS: Examples = {
  of_each_type: { summary: SUMMARIES.of_each_type, value: { ...MODEL, ...OF_EACH_TYPE } },
  consistent: { summary: SUMMARIES.consistent, value: { ...MODEL, ...CONSISTENT } },
  openai: { summary: SUMMARIES.openai, value: { ...MODEL, ...OPENAI } },
};

export const DECISION_ANSWERS: Examples = {
  ...SYSTEM_ONE_ANSWERS,
  openai: { summary: SUMMARIES.openai, value: OPENAI_ANSWER },
};

/** The response of `POST /v1/tokens`. */
const COUNT = {
  object: 'token_count',
  model: 'decision-1',
  mode: 'fast',
  input_tokens: 78,
  read_tokens: 78,
  cost_usd: 0.000039,
  exact: true,
  record_tokens_left_out: 0,
};

export const TOKEN_ANSWERS: Examples = {
  of_each_type: { summary: SUMMARIES.of_each_type, value: COUNT },
  consistent: {
    summary: SUMMARIES.consistent,
    value: { ...COUNT, mode: 'consistent', input_tokens: 30, read_tokens: 30, cost_usd: 0.000015 },
  },
  openai: { summary: SUMMARIES.openai, value: COUNT },
};

const { id: decision_id, ...CONSISTENT_DECISION } = CONSISTENT_ANSWER;

export const BATCH_REQUESTS: Examples = {
  batch: { summary: SUMMARIES.batch, value: { id: 'ticket-1', ...CONSISTENT } },
};

export const BATCH_ANSWERS: Examples = {
  batch: {
    summary: SUMMARIES.batch,
    value: {
      id: 'ticket-1',
      line: 1,
      request_id: 'req_6FqzT0mW1cXkJd8RbYvL2hNs',
      decision_id,
      ...CONSISTENT_DECISION,
    },
  },
};
