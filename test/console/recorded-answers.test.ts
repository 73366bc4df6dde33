import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { EXAMPLES } from '../../src/console/pages/playground/examples.ts';
import { recordedAnswers } from '../../src/console/pages/playground/recorded-answers.ts';
import { type DecisionResponse, DecisionResponseSchema } from '../../src/decisions/schemas.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Kernels of other CPUs round otherwise. */
const DIGITS = 1;

let service: TestService;
let key: string;

beforeAll(async () => {
  service = await startTestService({ embedded: true, cold: false });
  ({ key } = await addAccount(service));
});
afterAll(() => service.close());

/** All probabilities of a response, in the order of its questions and options. */
function probabilitiesOf({ answers }: DecisionResponse): readonly number[] {
  return Object.values(answers).flatMap((answer) =>
    answer.type === 'noul' ? [answer.noul] : Object.values(answer.probabilities),
  );
}

test.each(EXAMPLES.map((example) => [example.name, example] as const))(
  'what the playground shows of "%s" before anybody can ask is what the model answers',
  async (name, { state, questions }) => {
    const recorded = Value.Parse(DecisionResponseSchema, recordedAnswers(name));
    const response = await ask(service, key, { state, questions });
    const answered = Value.Parse(DecisionResponseSchema, await response.json());
    expect(Object.keys(recorded.answers)).toEqual(Object.keys(answered.answers));
    expect(recorded.usage).toEqual(answered.usage);
    const expected = probabilitiesOf(answered);
    probabilitiesOf(recorded).forEach((probability, at) => {
      expect(probability).toBeCloseTo(expected[at] ?? Number.NaN, DIGITS);
    });
  },
);

test('there is nothing recorded of what is no example', () => {
  expect(recordedAnswers('constructor')).toBeUndefined();
  expect(recordedAnswers(undefined)).toBeUndefined();
});
