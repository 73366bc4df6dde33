import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';
import { BODY_BYTES_MAX, type Code } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => closeAudited(service));

/** A request in the making: tests break it, the most general things last. */
interface Draft {
  key: string | undefined;
  fields: Record<string, unknown>;
  questions: Record<string, unknown>;
  text: (json: string) => string;
  account: { credit_dollars: number; tier: number };
  /** Changes of the account before the request. */
  readonly preparations: ((account: TestAccount) => unknown)[];
}

interface Break {
  readonly code: Code;
  readonly param: string | null;
  /** Breaks that cannot be in the same request. */
  readonly excludes?: readonly string[];
  readonly apply: (draft: Draft) => void;
}

/** Everything that a request can be refused for, one after the other as the service looks at it. */
const BREAKS: Readonly<Record<string, Break>> = {
  'no key': {
    code: 'missing_api_key',
    param: null,
    excludes: ['unknown key', 'tier 0'],
    apply: (draft) => {
      draft.key = '';
    },
  },
  'unknown key': {
    code: 'invalid_api_key',
    param: null,
    excludes: ['no key', 'tier 0'],
    apply: (draft) => {
      draft.key = `sk_svc_${'x'.repeat(32)}`;
    },
  },
  'tier 0': {
    code: 'insufficient_credit',
    param: null,
    excludes: ['no credit', 'rate limit', 'spend limit'],
    apply: (draft) => {
      draft.account = { credit_dollars: 0, tier: 0 };
    },
  },
  'too large': {
    code: 'request_too_large',
    param: null,
    apply: (draft) => {
      const { text } = draft;
      draft.text = (json) => text(json).padEnd(BODY_BYTES_MAX + 1);
    },
  },
  'broken JSON': {
    code: 'invalid_json',
    param: null,
    apply: (draft) => {
      const { text } = draft;
      draft.text = (json) => `${text(json)}}`;
    },
  },
  'no model': {
    code: 'missing_model',
    param: 'model',
    excludes: ['unknown model'],
    apply: (draft) => {
      draft.fields.model = undefined;
    },
  },
  'no state': {
    code: 'missing_state',
    param: 'state',
    apply: (draft) => {
      draft.fields.state = undefined;
    },
  },
  'no questions': {
    code: 'missing_questions',
    param: 'questions',
    excludes: ['too many questions', 'unknown type', 'wrong criteria', 'what the model rejects'],
    apply: (draft) => {
      draft.questions = {};
    },
  },
  'unknown model': {
    code: 'model_not_found',
    param: 'model',
    apply: (draft) => {
      draft.fields.model = 'decision-99';
    },
  },
  'too many questions': {
    code: 'too_many_questions',
    param: 'questions',
    apply: (draft) => {
      for (let index = 0; index < 33; index += 1) draft.questions[`more${index}`] = { type: 'noul' };
    },
  },
  'unknown type': {
    code: 'invalid_question_type',
    param: 'questions.last.type',
    apply: (draft) => {
      draft.questions.last = { type: 'text' };
    },
  },
  'wrong criteria': {
    code: 'invalid_criteria',
    param: 'questions.first.criteria',
    apply: (draft) => {
      draft.questions.first = { type: 'choice', criteria: { one: 'only one' } };
    },
  },
  'unknown mode': {
    code: 'invalid_mode',
    param: 'mode',
    apply: (draft) => {
      draft.fields.mode = 'slow';
    },
  },
  'rate limit': {
    code: 'rate_limit_exceeded',
    param: null,
    apply: (draft) => {
      draft.preparations.push(async ({ key, organization_id }) => {
        await setTierSettings(service.accounts, OPERATOR, organization_id, { requests_per_minute: 1 });
        // Counts whatever becomes of it, because it is in order.
        await (await ask(service, key)).text();
      });
    },
  },
  'spend limit': {
    code: 'project_spend_limit',
    param: null,
    apply: (draft) => {
      draft.preparations.push(({ project_id }) =>
        changeProject(service.accounts, OPERATOR, { project_id, spend_limit_micros: 0 }),
      );
    },
  },
  'no credit': {
    code: 'insufficient_credit',
    param: null,
    apply: (draft) => {
      draft.account.credit_dollars = 0;
    },
  },
  'what the model rejects': {
    code: 'invalid_request',
    param: 'questions.rejected.criteria',
    apply: (draft) => {
      draft.questions.rejected = { type: 'noul', criteria: 'not an object' };
    },
  },
};

const NAMES = Object.keys(BREAKS);

async function send(names: readonly string[]): Promise<{ response: Response; account: TestAccount }> {
  const draft: Draft = {
    key: undefined,
    fields: { model: SMALL_REQUEST.model, state: SMALL_REQUEST.state },
    questions: { ...SMALL_REQUEST.questions },
    text: (json) => json,
    account: { credit_dollars: 5, tier: 1 },
    preparations: [],
  };
  for (const name of names) BREAKS[name]?.apply(draft);
  const account = await addAccount(service, draft.account);
  for (const prepare of draft.preparations) await prepare(account);
  const key = draft.key ?? account.key;
  const response = await service.fetch('/v1/decisions', {
    method: 'POST',
    headers: key === '' ? {} : { authorization: `Bearer ${key}` },
    body: draft.text(JSON.stringify({ ...draft.fields, questions: draft.questions })),
  });
  return { response, account };
}

describe('Request processing order', () => {
  test('a request that breaks nothing is answered', async () => {
    await expectDecision((await send([])).response);
  });

  describe('a request that breaks one rule gets its code', () => {
    for (const name of NAMES) {
      test(name, async () => {
        const { response } = await send([name]);
        await expectError(response, BREAKS[name]?.code ?? 'not_found', BREAKS[name]?.param);
      });
    }
  });

  describe('a request that breaks two rules gets the code of the earlier one', () => {
    NAMES.forEach((first, index) => {
      for (const second of NAMES.slice(index + 1)) {
        const earlier = BREAKS[first];
        if (earlier === undefined || earlier.excludes?.includes(second)) continue;
        if (BREAKS[second]?.excludes?.includes(first)) continue;
        test(`${first}, ${second}`, async () => {
          const { response, account } = await send([first, second]);
          await expectError(response, earlier.code, earlier.param);
          expect((await booksOf(service, account)).held_micros).toBe(0);
        });
      }
    });
  });

  test('the last of the rules is the only one whose refusal reached the model, and is recorded', async () => {
    for (const name of NAMES) {
      if (name === 'rate limit') continue;
      const { response, account } = await send([name]);
      const reached_model = response.headers.has('service-processing-ms');
      expect({ name, reached_model }).toEqual({ name, reached_model: name === NAMES.at(-1) });
      expect({ name, ...(await booksOf(service, account)) }).toMatchObject({
        name,
        usage_rows: reached_model ? 1 : 0,
        held_micros: 0,
      });
    }
  });
});
