import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  askedQuestions,
  backward,
  isOther,
  largestChange,
  shownAnswer,
} from '../../src/console/pages/playground/asked.ts';
import {
  bodyOf,
  complaintsAbout,
  type Draft,
  draftOf,
  duplicateOf,
  moved,
  newLevel,
  newOption,
  newQuestion,
} from '../../src/console/pages/playground/draft.ts';
import { EXAMPLES } from '../../src/console/pages/playground/examples.ts';
import { prettyJson } from '../../src/console/pages/playground/pretty-json.ts';
import { snippet } from '../../src/console/pages/playground/snippets.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { isJsonObject, JsonObject, type JsonValue, jsonValueOf } from '../../src/json/json-value.ts';
import { readJson } from '../../src/json/read-json.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { QUESTION_TYPES } from '../../src/questions/types-and-modes.ts';

setDefaultTimeout(120_000);

const python = Bun.which('python3');

/** Names that JavaScript would put in another order, and texts that quoting goes wrong with. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '10',
    '2',
    '__proto__',
    "it's",
    '"quoted"',
    '$HOME `x` \\',
    'JSON',
    'a\nb\r\n\tc',
    '</script>',
  ),
);

const anyDraft: fc.Arbitrary<Draft> = fc
  .record({
    text: anyText,
    questions: fc.uniqueArray(
      fc.record({
        id: anyText,
        type: fc.constantFrom(...QUESTION_TYPES),
        instructions: anyText,
        yes: anyText,
        no: anyText,
        threshold: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
        options: fc.uniqueArray(fc.tuple(anyText, anyText), { selector: ([id]) => id, maxLength: 5 }),
        levels: fc.array(anyText, { maxLength: 5 }),
      }),
      { selector: ({ id }) => id, maxLength: 4 },
    ),
  })
  .map(({ text, questions }) => ({
    record: { kind: 'text', text },
    questions: questions.map((question) => ({
      ...question,
      key: 0,
      threshold: question.threshold === null ? null : Math.abs(question.threshold),
      options: question.options.map(([id, description]) => newOption(id, description)),
      levels: question.levels.map(newLevel),
    })),
  }));

const ASKING = { model: 'decision-1', mode: 'consistent' } as const;

/** A body as it is sent, read as the service reads it. */
function sent(body: JsonValue): string {
  return writeJson(readJson(writeJson(body)));
}

function bodyOfText(text: string): JsonObject<JsonValue> {
  const value = readJson(text);
  if (!isJsonObject(value)) throw new Error('not an object');
  return value;
}

describe('the form and its JSON say the same', () => {
  test('whatever is written in the form, it is the same request after a look at its JSON', () => {
    fc.assert(
      fc.property(anyDraft, (draft) => {
        const body = bodyOf(draft, ASKING);
        const read = draftOf(readJson(prettyJson(body)));
        if (typeof read === 'string') throw new Error(read);
        expect(read.asking).toEqual(ASKING);
        expect(sent(bodyOf(read.draft, ASKING))).toBe(sent(body));
      }),
    );
  });

  test('options keep the order in which they were written, whatever their names are', () => {
    const question = {
      ...newQuestion('choice', []),
      id: 'q',
      options: ['10', '2', 'a'].map((id) => newOption(id)),
    };
    const body = bodyOf({ record: { kind: 'text', text: '' }, questions: [question] }, ASKING);
    expect(writeJson(body)).toContain('{"10":null,"2":null,"a":null}');
    expect(writeJson(backward(body))).toContain('{"a":null,"2":null,"10":null}');
    expect(writeJson(backward(backward(body)))).toBe(writeJson(body));
  });

  test.each([
    ['[]', 'The request is not a JSON object.'],
    ['{"state": 5}', '"state" is neither a text nor an object.'],
    ['{"questions": []}', '"questions" is not an object.'],
    [
      '{"questions": {"a": {"type": "box"}}}',
      'The question "a" has none of the types noul, choice and score.',
    ],
    ['{"questions": {"a": {"type": "noul", "instructions": {}}}}', 'The instructions of "a" are not a text.'],
    ['{"questions": {"a": {"type": "choice", "criteria": []}}}', 'The criteria of "a" are not an object.'],
    ['{"questions": {"a": {"type": "score", "criteria": [1, 2]}}}', 'A level of "a" is not a text.'],
  ])('what the form cannot show is said, and not lost: %s', (text, reason) => {
    expect(draftOf(readJson(text))).toBe(reason);
  });

  test('a record in JSON is sent as JSON, and one that is none is complained about', () => {
    const draft = (text: string): Draft => ({ record: { kind: 'json', text }, questions: [] });
    expect(writeJson(bodyOf(draft('{"b": 1, "1": [null]}'), ASKING).get('state') ?? null)).toBe(
      '{"b":1,"1":[null]}',
    );
    expect(writeJson(bodyOf(draft('{"order": 9007199254740993}'), ASKING).get('state') ?? null)).toBe(
      '{"order":"9007199254740993"}',
    );
    const not_json = 'This is not a JSON object or array. Mend it, or send it as text.';
    expect(complaintsAbout(draft('{"b"')).get('state')).toBe(not_json);
    expect(complaintsAbout(draft('5')).get('state')).toBe(not_json);
    expect(complaintsAbout(draft('{"b": 1}')).get('state')).toBeUndefined();
  });
});

describe('questions', () => {
  const questions = [newQuestion('noul', []), newQuestion('choice', ['question_1'])];

  test('a new or duplicated question has an id that no other has', () => {
    const ids = questions.map(({ id }) => id);
    const [first] = questions;
    if (first === undefined) throw new Error('no question');
    const copy = duplicateOf(first, [...ids, `${first.id}_copy`]);
    expect(new Set([...ids, copy.id]).size).toBe(3);
    expect(copy.key).not.toBe(first.key);
  });

  test('a question moves by one place, and not beyond the ends', () => {
    expect(moved([1, 2, 3], 0, 1)).toEqual([2, 1, 3]);
    expect(moved([1, 2, 3], 2, -1)).toEqual([1, 3, 2]);
    expect(moved([1, 2, 3], 0, -1)).toEqual([1, 2, 3]);
    expect(moved([1, 2, 3], 2, 1)).toEqual([1, 2, 3]);
  });

  test('names that a JSON object cannot have twice are complained about at their fields', () => {
    const [a, b] = questions;
    if (a === undefined || b === undefined) throw new Error('no question');
    const [option, other] = b.options;
    const draft: Draft = {
      record: { kind: 'text', text: 'A record.' },
      questions: [
        { ...a, instructions: 'Is it?' },
        { ...b, id: a.id, instructions: 'Which is it?' },
      ],
    };
    expect(Object.fromEntries(complaintsAbout(draft))).toEqual({
      [`id-${b.key}`]: 'Another question has this name.',
      [`option-${option?.key}`]: 'Every option needs a name.',
      [`option-${other?.key}`]: 'Every option needs a name.',
    });
  });
});

describe('what would be charged and says nothing', () => {
  const fieldsOf = (draft: Draft) => [...complaintsAbout(draft).keys()];
  const record = { kind: 'text', text: 'A record.' } as const;
  const asked = { ...newQuestion('noul', []), instructions: 'Is it?' };

  test.each([
    ['text', ' \n'],
    ['json', '{}'],
    ['json', ' [ { } ] '],
  ] as const)('an empty record is complained about: %s %j', (kind, text) => {
    expect(fieldsOf({ record: { kind, text }, questions: [asked] })).toEqual(['state']);
  });

  test('so is a request without questions', () => {
    expect(fieldsOf({ record, questions: [] })).toEqual(['questions']);
  });

  test.each(['noul', 'choice', 'score'] as const)('so is a question that says nothing: %s', (type) => {
    const empty = { ...newQuestion(type, []), options: [newOption('a'), newOption('b')] };
    expect(fieldsOf({ record, questions: [empty] })).toEqual([`instructions-${empty.key}`]);
  });

  test('a question that says all in its criteria is none of them', () => {
    const yes = { ...newQuestion('noul', []), yes: 'It asks for money.' };
    const options = [newOption('a', 'It is about money.'), newOption('b')];
    const choice = { ...newQuestion('choice', ['question_1']), options };
    expect(fieldsOf({ record, questions: [yes, choice] })).toEqual([]);
  });
});

describe('answers beside each other', () => {
  const body = bodyOfText(
    '{"questions": {"s": {"type": "score", "criteria": ["low", "mid", "high"]}, "n": {"type": "noul", "threshold": 2}}}',
  );
  const [score, noul] = askedQuestions(body);
  if (score === undefined || noul === undefined) throw new Error('no question');
  const legend = { '0': '', '1': '', '2': '' };

  test('the names of options in an answer are the ids of a choice, the indexes of levels, and none of a yes/no question', () => {
    const [choice] = askedQuestions(
      bodyOfText('{"questions": {"c": {"type": "choice", "criteria": {"b": "", "a": ""}}}}'),
    );
    expect([choice, score, noul].map((question) => question?.classes)).toEqual([
      ['b', 'a'],
      ['0', '1', '2'],
      [],
    ]);
  });

  test('levels that were sent backward are counted back', () => {
    const answer = { type: 'score' as const, legend, confidence: 0.7 };
    const a = shownAnswer(
      score,
      { s: { ...answer, score: 1.6, probabilities: { '0': 0.1, '1': 0.2, '2': 0.7 } } },
      'as_written',
    );
    const b = shownAnswer(
      score,
      { s: { ...answer, score: 0.4, probabilities: { '0': 0.7, '1': 0.2, '2': 0.1 } } },
      'reversed',
    );
    if (a === undefined || b === undefined) throw new Error('no answer');
    expect(b.shares).toEqual(a.shares);
    expect(largestChange(a, b)).toBe(0);
    expect(isOther(a, b, 0.5)).toBe(false);
  });

  test('a yes/no answer is another one on the other side of the threshold only', () => {
    const shown = (yes: number) => shownAnswer(noul, { n: { type: 'noul', noul: yes } }, 'as_written');
    const [a, b] = [shown(0.81), shown(0.95)];
    if (a === undefined || b === undefined) throw new Error('no answer');
    expect(noul.threshold).toBeNull();
    expect([isOther(a, b, 0.5), isOther(a, b, 0.9), isOther(a, b, 0.95)]).toEqual([false, true, true]);
  });

  test('an answer of another type, or none, is not shown', () => {
    expect(shownAnswer(score, { s: { type: 'noul', noul: 1 } }, 'as_written')).toBeUndefined();
    expect(shownAnswer({ ...score, id: 'toString' }, {}, 'as_written')).toBeUndefined();
  });
});

test('every example is a request that the form can show, with names and texts', () => {
  expect(EXAMPLES.length).toBe(5);
  for (const { state, questions } of EXAMPLES) {
    const read = draftOf(jsonValueOf({ state, questions }));
    if (typeof read === 'string') throw new Error(read);
    expect([...complaintsAbout(read.draft)]).toEqual([]);
    expect(read.draft.questions.length).toBeGreaterThan(1);
  }
});

describe('a request as code, whatever is in it', () => {
  /** The body that a program sends to the port that it is given. */
  async function sentBy(
    bodies: readonly JsonObject<JsonValue>[],
    run: (origin: string, body: JsonObject<JsonValue>) => Promise<void>,
  ): Promise<void> {
    let received = '';
    await using server = Bun.serve({
      port: 0,
      async fetch(request) {
        received = await request.text();
        return Response.json({ model: 'm', answers: {}, usage: { input_tokens: 1, output_tokens: 0 } });
      },
    });
    for (const body of bodies) {
      received = '';
      await run(`http://127.0.0.1:${server.port}`, body);
      expect(writeJson(sortedAsJavaScript(readJson(received)))).toBe(writeJson(sortedAsJavaScript(body)));
    }
  }

  /** The SDK of JavaScript cannot keep another order of members, and sends missing instructions as null. */
  function sortedAsJavaScript(value: JsonValue): JsonValue {
    if (Array.isArray(value)) return value.map(sortedAsJavaScript);
    if (!isJsonObject(value)) return value;
    const names = value.names
      .filter((name) => name !== 'instructions' || value.get(name) !== null)
      .toSorted();
    return new JsonObject(
      names,
      names.map((name) => sortedAsJavaScript(value.get(name) ?? null)),
    );
  }

  const bodies = fc
    .sample(anyDraft, { numRuns: 12, seed: 7 })
    .map((draft) => bodyOf(draft, ASKING))
    .map(withEnough);

  /** The SDK itself refuses questions without two levels, and none at all. */
  function withEnough(body: JsonObject<JsonValue>): JsonObject<JsonValue> {
    const extra = bodyOfText(
      '{"type": "score", "instructions": "It\'s \\"how\\" much?", "criteria": ["a", "b"]}',
    );
    const questions = body.get('questions');
    if (!isJsonObject(questions)) throw new Error('no questions');
    const kept = questions.names.flatMap((name, at) => {
      const question = questions.values[at] ?? null;
      const criteria = isJsonObject(question) ? question.get('criteria') : undefined;
      const is_short = (Array.isArray(criteria) && criteria.length < 2) || name === 'extra';
      return is_short ? [] : [[name, question] as const];
    });
    return body.with(
      'questions',
      new JsonObject(
        [...kept.map(([name]) => name), 'extra'],
        [...kept.map(([, question]) => question), extra],
      ),
    );
  }

  test('curl sends exactly it', async () => {
    await sentBy(bodies, async (origin, body) => {
      await succeeds(['bash', '-c', snippet('curl', origin, body)], '');
    });
  });

  test('TypeScript with the SDK sends it', async () => {
    await sentBy(bodies.slice(0, 5), async (origin, body) => {
      await succeeds([process.execPath, 'run', '-'], snippet('typescript', origin, body));
    });
  });

  test.skipIf(python === null)('Python hands it to the SDK', async () => {
    await sentBy(bodies.slice(0, 5), async (origin, body) => {
      await succeeds([python ?? '', '-'], snippet('python', origin, body), {
        PYTHONPATH: join(import.meta.dir, 'python-sdk'),
      });
    });
  });
});

async function succeeds(
  command: readonly string[],
  input: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  const child = Bun.spawn([...command], {
    cwd: projectFile('.'),
    env: { ...process.env, ...environment, TDS_API_KEY: `sk_svc_${'k'.repeat(32)}` },
    stdin: new Blob([input]),
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const complaints = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(complaints);
}
