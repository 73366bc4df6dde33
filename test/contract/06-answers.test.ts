import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Answer } from '../../src/questions/question.ts';
import { closeAudited } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision } from './expectations.ts';

const RECORDS = [
  'I was charged twice for order 8812. Please give the second payment back.',
  'The app crashes whenever I open the settings. It is urgent, we are losing orders!',
  'Thank you, everything works. No need to answer.',
];

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let answersOfRecords: Readonly<Record<string, Answer>>[];
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  const { key } = await addAccount(service);
  answersOfRecords = [];
  for (const state of RECORDS) {
    const questions = {
      ...ALL_TYPES,
      again: { ...ALL_TYPES.refund, threshold: 0.5 },
      low: { ...ALL_TYPES.refund, threshold: 0.2 },
      high: { ...ALL_TYPES.refund, threshold: 0.8 },
      objects: { type: 'score', criteria: [{ level: 'low', since: [2024] }, null, 2] },
    };
    answersOfRecords.push((await expectDecision(await ask(service, key, { state, questions }))).answers);
  }
});
afterAll(() => closeAudited(service));

function answers<T extends Answer['type']>(id: string, type: T): Extract<Answer, { type: T }>[] {
  const isOfType = (answer: Answer | undefined): answer is Extract<Answer, { type: T }> =>
    answer?.type === type;
  const found = answersOfRecords.map((each) => each[id]).filter(isOfType);
  expect(found).toHaveLength(RECORDS.length);
  return found;
}

describe('Answer: noul', () => {
  test('type and noul, and nothing else without a threshold', () => {
    for (const answer of answers('refund', 'noul'))
      expect(Object.keys(answer).sort()).toEqual(['noul', 'type']);
  });

  test('committed: at most 0.199 or at least 0.801', () => {
    for (const { noul } of answers('refund', 'noul')) {
      expect(noul).toBeWithin(0, 1.000001);
      expect(noul <= 0.199 || noul >= 0.801).toBe(true);
    }
  });

  test('threshold and decision, noul >= threshold, with a valid threshold', () => {
    for (const answer of answers('again', 'noul')) {
      expect(Object.keys(answer).sort()).toEqual(['decision', 'noul', 'threshold', 'type']);
      expect(answer.threshold).toBe(0.5);
      expect(answer.decision).toBe(answer.noul >= 0.5);
    }
  });

  test('a threshold from 0.2 to 0.8 behaves like 0.5', () => {
    const decisions = (id: string) => answers(id, 'noul').map(({ decision }) => decision);
    expect(decisions('low')).toEqual(decisions('again'));
    expect(decisions('high')).toEqual(decisions('again'));
  });
});

describe('Answer: choice', () => {
  test('choice is the most likely of the supplied ids', () => {
    for (const { choice, probabilities } of answers('team', 'choice')) {
      expect(Object.keys(probabilities)).toEqual(Object.keys(ALL_TYPES.team.criteria));
      expect(probabilities[choice]).toBe(Math.max(...Object.values(probabilities)));
    }
  });

  test('confidence is (max_p - 1/n) / (1 - 1/n)', () => {
    for (const { probabilities, confidence } of answers('team', 'choice')) {
      const values = Object.values(probabilities);
      const even = 1 / values.length;
      expect(confidence).toBeCloseTo((Math.max(...values) - even) / (1 - even), 5);
      expect(confidence).toBeWithin(0, 1.000001);
    }
  });
});

describe('Answer: score', () => {
  test('score is the sum of index times probability', () => {
    for (const { score, probabilities } of answers('urgency', 'score')) {
      const mean = Object.entries(probabilities).reduce(
        (sum, [level, value]) => sum + Number(level) * value,
        0,
      );
      expect(score).toBeCloseTo(mean, 6);
      expect(score).toBeWithin(0, ALL_TYPES.urgency.criteria.length);
    }
  });

  test('probabilities and legend have every level index as a string', () => {
    for (const { probabilities, legend } of answers('urgency', 'score')) {
      expect(Object.keys(probabilities)).toEqual(['0', '1', '2', '3']);
      expect(legend).toEqual({ '0': 'can wait', '1': 'this week', '2': 'today', '3': 'now' });
    }
  });

  test('the legend gives levels that are no strings back as they were sent, and none for null', () => {
    for (const { legend } of answers('objects', 'score')) {
      expect(legend).toEqual({ '0': { level: 'low', since: [2024] }, '1': '', '2': 2 });
    }
  });

  const WRITTEN_LEVELS = [
    { level: '1e400', in_legend: '1e400' },
    { level: '-1e400', in_legend: '-1e400' },
    { level: '[1e400]', in_legend: ['1e400'] },
    { level: '1'.padEnd(400, '0'), in_legend: '1'.padEnd(400, '0') },
    { level: '1e308', in_legend: 1e308 },
    { level: '1e-400', in_legend: 0 },
  ];
  for (const { level, in_legend } of WRITTEN_LEVELS) {
    test(`the legend never has null for a number: ${level.slice(0, 10)}`, async () => {
      const { key } = await addAccount(service);
      const questions = { q: { type: 'score', criteria: ['none', 'LEVEL'] } };
      const body = JSON.stringify({ ...SMALL_REQUEST, questions }).replace('"LEVEL"', level);
      const { answers: given } = await expectDecision(await post(service, key, body));
      expect(given.q).toMatchObject({ legend: { '0': 'none', '1': in_legend } });
    });
  }

  test('confidence is the probability of the most likely level', () => {
    for (const { probabilities, confidence } of answers('urgency', 'score')) {
      expect(confidence).toBe(Math.max(...Object.values(probabilities)));
    }
  });
});
