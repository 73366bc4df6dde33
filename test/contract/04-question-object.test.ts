import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { closeAudited } from '../support/money.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService();
  key = (await addAccount(service)).key;
});
afterAll(() => closeAudited(service));

const TWO_OPTIONS = { a: 'the first', b: 'the second' };
const TWO_LEVELS = ['low', 'high'];

/** Ids that a path, a header or an object could trip over. */
const ODD_IDS = [
  '',
  ' ',
  'a.b',
  'questions.x.type',
  'a"b',
  "a'b",
  'a\\b',
  'a\nb',
  '\u0000',
  '__proto__',
  'constructor',
  'toString',
  '7',
  'żółć',
  '🦊',
  '\ud800',
  '<script>',
  'x'.repeat(10_000),
];

async function answerTo(question: unknown) {
  const { answers } = await expectDecision(await ask(service, key, { questions: { q: question } }));
  const answer = answers.q;
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

function options(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`o${index}`, '']));
}

describe('type', () => {
  test('noul, choice or score', async () => {
    expect((await answerTo({ type: 'noul' })).type).toBe('noul');
    expect((await answerTo({ type: 'choice', criteria: TWO_OPTIONS })).type).toBe('choice');
    expect((await answerTo({ type: 'score', criteria: TWO_LEVELS })).type).toBe('score');
  });

  for (const question of [
    null,
    'noul',
    7,
    true,
    [],
    ['noul'],
    {},
    { type: null },
    { type: 'NOUL' },
    { type: ['noul'] },
    { type: 'text' },
  ]) {
    test(`${JSON.stringify(question)}: 422 invalid_question_type`, async () => {
      const response = await ask(service, key, { questions: { good: { type: 'noul' }, 'my id': question } });
      await expectError(response, 'invalid_question_type', 'questions.my id.type');
    });
  }

  for (const id of ODD_IDS) {
    test(`param names the question ${JSON.stringify(id).slice(0, 40)}`, async () => {
      const questions = Object.fromEntries([[id, { type: 'text' }]]);
      await expectError(
        await ask(service, key, { questions }),
        'invalid_question_type',
        `questions.${id}.type`,
      );
    });
  }

  test('the type of every question is checked before the criteria of any', async () => {
    const questions = { first: { type: 'choice' }, second: { type: 'text' } };
    await expectError(
      await ask(service, key, { questions }),
      'invalid_question_type',
      'questions.second.type',
    );
  });

  test('of several questions at fault the first is named', async () => {
    const questions = { good: { type: 'noul' }, second: { type: 1 }, third: { type: 2 } };
    await expectError(
      await ask(service, key, { questions }),
      'invalid_question_type',
      'questions.second.type',
    );
  });
});

describe('instructions', () => {
  for (const instructions of [
    undefined,
    null,
    '',
    'Is it late?',
    { ask: 'Is it late?' },
    ['Is', 'it', 'late?'],
    7,
  ]) {
    test(`${JSON.stringify(instructions)} is accepted`, async () => {
      await answerTo({ type: 'noul', instructions });
    });
  }
});

describe('threshold', () => {
  for (const threshold of [0, 0.2, 0.5, 0.801, 1]) {
    test(`${threshold} is echoed with the decision`, async () => {
      const answer = await answerTo({ type: 'noul', threshold });
      if (answer.type !== 'noul') throw new Error('no noul');
      expect(answer.threshold).toBe(threshold);
      expect(answer.decision).toBe(answer.noul >= threshold);
    });
  }

  for (const threshold of [-0.1, 1.000001, -1e300, '0.5', true, null, [], {}]) {
    test(`${JSON.stringify(threshold)} is ignored`, async () => {
      expect(Object.keys(await answerTo({ type: 'noul', threshold })).sort()).toEqual(['noul', 'type']);
    });
  }

  test('a number beyond all numbers is ignored', async () => {
    const body = JSON.stringify({ ...SMALL_REQUEST, questions: { q: { type: 'noul', threshold: 'HUGE' } } });
    const { answers } = await expectDecision(await post(service, key, body.replace('"HUGE"', '1e400')));
    expect(Object.keys(answers.q ?? {}).sort()).toEqual(['noul', 'type']);
  });

  test('applies to noul only', async () => {
    expect(await answerTo({ type: 'choice', criteria: TWO_OPTIONS, threshold: 0.5 })).not.toHaveProperty(
      'threshold',
    );
    expect(await answerTo({ type: 'score', criteria: TWO_LEVELS, threshold: 0.5 })).not.toHaveProperty(
      'decision',
    );
  });
});

describe('criteria of noul', () => {
  test('optional', async () => {
    const plain = await answerTo({ type: 'noul', instructions: 'Is it late?' });
    for (const criteria of [null, {}, { true: null, false: null }]) {
      expect(await answerTo({ type: 'noul', instructions: 'Is it late?', criteria })).toEqual(plain);
    }
  });

  test('the keys true and false describe the answers, and yes and no do the same', async () => {
    const [yes, no] = ['they ask for money', 'they ask for nothing'];
    const plain = await answerTo({ type: 'noul' });
    const described = await answerTo({ type: 'noul', criteria: { true: yes, false: no } });
    expect(described).not.toEqual(plain);
    expect(await answerTo({ type: 'noul', criteria: { yes, no } })).toEqual(described);
    expect(await answerTo({ type: 'noul', criteria: { true: yes, no } })).toEqual(described);
  });

  for (const criteria of [[], ['yes', 'no'], 'yes', 7, true, false]) {
    test(`${JSON.stringify(criteria)}: the model rejects the request, 422 invalid_request`, async () => {
      const response = await ask(service, key, { questions: { 'a.b': { type: 'noul', criteria } } });
      await expectError(response, 'invalid_request', 'questions.a.b.criteria');
    });
  }
});

describe('criteria of choice', () => {
  test('an object of 2 to 255 options', async () => {
    for (const count of [2, 255]) {
      const answer = await answerTo({ type: 'choice', criteria: options(count) });
      if (answer.type !== 'choice') throw new Error('no choice');
      expect(Object.keys(answer.probabilities)).toHaveLength(count);
    }
  });

  test('descriptions may be strings, objects, arrays or null', async () => {
    await answerTo({
      type: 'choice',
      criteria: { a: 'text', b: { more: 'text' }, c: ['text'], d: null, e: 7 },
    });
  });

  for (const [name, criteria] of Object.entries({
    missing: undefined,
    null: null,
    'a string': 'a, b',
    'an array': ['a', 'b'],
    empty: {},
    'one option': options(1),
    '256 options': options(256),
  })) {
    test(`${name}: 422 invalid_criteria`, async () => {
      const response = await ask(service, key, { questions: { q: { type: 'choice', criteria } } });
      await expectError(response, 'invalid_criteria', 'questions.q.criteria');
    });
  }
});

describe('criteria of score', () => {
  test('an array of 2 to 255 levels', async () => {
    for (const count of [2, 255]) {
      const criteria = Array.from({ length: count }, (_, index) => `level ${index}`);
      const answer = await answerTo({ type: 'score', criteria });
      if (answer.type !== 'score') throw new Error('no score');
      expect(Object.keys(answer.probabilities)).toEqual(criteria.map((_, index) => String(index)));
    }
  });

  for (const [name, criteria] of Object.entries({
    missing: undefined,
    null: null,
    'a string': 'low, high',
    'an object': { 0: 'low', 1: 'high' },
    empty: [],
    'one level': ['low'],
    '256 levels': Array.from({ length: 256 }, () => 'level'),
  })) {
    test(`${name}: 422 invalid_criteria`, async () => {
      const response = await ask(service, key, { questions: { q: { type: 'score', criteria } } });
      await expectError(response, 'invalid_criteria', 'questions.q.criteria');
    });
  }

  for (const id of ODD_IDS) {
    test(`param names the question ${JSON.stringify(id).slice(0, 40)}`, async () => {
      const questions = Object.fromEntries([[id, { type: 'score', criteria: [] }]]);
      await expectError(
        await ask(service, key, { questions }),
        'invalid_criteria',
        `questions.${id}.criteria`,
      );
    });
  }
});
