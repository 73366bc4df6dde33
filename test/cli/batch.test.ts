import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/access/actor.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { HEADER, ndjson, record } from '../batches/support.ts';
import { Gate, intercepted } from '../support/faults.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { booksOf, closeAudited, newEntryId, usageOf } from '../support/money.ts';
import { MAIN } from '../support/program.ts';
import { ALL_TYPES } from '../support/requests.ts';
import {
  addRichlyLimited,
  embeddedEngine,
  MODEL_TEST_TIMEOUT_MS,
  POLL_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { tds } from './support.ts';

setDefaultTimeout(4 * MODEL_TEST_TIMEOUT_MS);

const CREDIT_MICROS = 100_000_000;

let service: TestService;
let account: TestAccount;
/** Where evaluations wait; null lets them go. */
let gate: Gate | null = null;
let folder: ReturnType<typeof temporaryDirectory>;
beforeAll(async () => {
  service = await startTestService({
    openEngine: async () =>
      intercepted(instantEngine(await embeddedEngine()), async (run, { signal }) => {
        const given_up = Promise.withResolvers<never>();
        signal?.addEventListener('abort', () => given_up.reject(signal.reason));
        if (gate !== null) await Promise.race([gate.pass(), given_up.promise]);
        return await run();
      }),
  });
});
afterAll(() => closeAudited(service));
beforeEach(async () => {
  folder = temporaryDirectory();
  account = await addRichlyLimited(service, CREDIT_MICROS);
});
afterEach(() => folder.remove());

const path = (name: string) => join(folder.path, name);
const write = (name: string, text: string) => writeFileSync(path(name), text);
const read = (name: string) => readFileSync(path(name), 'utf8');
const linesOf = (name: string) => read(name).split('\n').slice(0, -1);

function commandOf(args: readonly string[]): readonly string[] {
  return ['decide', ...args, '--url', service.server.address, '--key', account.key];
}

const decide = (...args: string[]) => tds(commandOf(args));

function records(count: number) {
  return Array.from({ length: count }, (_, number) => record(number));
}

const QUESTIONS = JSON.stringify({ questions: ALL_TYPES });

describe('records as JSON lines', () => {
  test('are answered into JSON lines by their ids, and without an output on standard output', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(20), { state: 'no id' }]));
    const printed = await decide('--batch', path('records.jsonl'));
    const written = await decide('--batch', path('records.jsonl'), '--output', path('answers.jsonl'));
    expect([printed.code, written.code, written.stdout]).toEqual([0, 0, '']);
    const ids = [...records(20).map(({ id }) => id), 22];
    for (const text of [printed.stdout, read('answers.jsonl')]) {
      const answers = text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
      expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(ids));
      expect(answers.every(({ object }) => object === 'decision')).toBe(true);
    }
    expect(written.stderr).toContain('21 of 21 records answered');
    expect(existsSync(path('answers.jsonl.lock'))).toBe(false);
  });

  test('have errors in a file beside the answers, which the next run asks again', async () => {
    const broken = { id: 'broken', state: 'a', questions: { q: { type: 'essay' } } };
    write('records.jsonl', ndjson([HEADER, record(0), broken, record(1)]));
    const first = await decide('--batch', path('records.jsonl'), '--output', path('answers.jsonl'));
    expect([first.code, first.stderr]).toEqual([1, expect.stringContaining('1 with errors')]);
    expect(linesOf('answers.jsonl')).toHaveLength(2);
    expect(linesOf('answers.jsonl.errors.jsonl').map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        id: 'broken',
        error: expect.objectContaining({ code: 'invalid_question_type' }),
      }),
    ]);
    write('records.jsonl', ndjson([HEADER, record(0), { id: 'broken', state: 'a' }, record(1)]));
    expect((await decide('--batch', path('records.jsonl'), '--output', path('answers.jsonl'))).code).toBe(0);
    expect(linesOf('answers.jsonl')).toHaveLength(3);
    expect(existsSync(path('answers.jsonl.errors.jsonl'))).toBe(false);
    expect(await usageOf(service, account)).toHaveLength(3);
  });
});

describe('records as CSV', () => {
  test('are answered into CSV, with a column for each answer and its probabilities', async () => {
    write('questions.json', QUESTIONS);
    write('records.csv', '\ufeffid,state\r\n7,"Twice, ""again""\ncharged"\r\n=1+1,Late\r\n');
    const { code } = await decide(
      path('questions.json'),
      '--batch',
      path('records.csv'),
      '--output',
      path('a.csv'),
    );
    expect(code).toBe(0);
    const [headings, ...rows] = read('a.csv').split('\r\n').slice(0, -1);
    expect(headings).toBe(
      'id,refund,team,team.confidence,team.billing,team.technical,team.sales,urgency,urgency.confidence,urgency.0,urgency.1,urgency.2,urgency.3,model,mode,input_tokens,cost_usd,request_id',
    );
    expect(rows.map((row) => row.split(',')[0]).sort()).toEqual(["'=1+1", '7']);
    for (const row of rows) {
      const cells = row.split(',');
      expect(cells).toHaveLength(18);
      expect(cells.slice(1, 3)).toEqual(['0.801', 'billing']);
      expect(cells.slice(13, 15)).toEqual(['decision-1', 'fast']);
    }
    const again = await decide(
      path('questions.json'),
      '--batch',
      path('records.csv'),
      '--output',
      path('a.csv'),
    );
    expect([again.code, again.stderr]).toEqual([
      0,
      expect.stringContaining('0 of 2 records answered, 2 before'),
    ]);
    expect(await usageOf(service, account)).toHaveLength(2);
  });

  test('without the columns are objects, by the number of their row; semicolons and tabs separate, too', async () => {
    for (const [name, delimiter] of [
      ['a.csv', ';'],
      ['b.tsv', '\t'],
    ] as const) {
      write(name, `subject${delimiter}text\nLamp${delimiter}It is late\nCable${delimiter}It is there\n`);
      write('questions.json', JSON.stringify(HEADER));
      const { code, stdout } = await decide(path('questions.json'), '--batch', path(name));
      expect(code).toBe(0);
      const ids = stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).id);
      expect(ids.sort()).toEqual([1, 2]);
    }
  });
});

describe('a run that was interrupted', () => {
  test.each(['SIGKILL', 'SIGINT'] as const)('by %s goes on: no record is charged twice', async (signal) => {
    write('records.jsonl', ndjson([HEADER, ...records(300)]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    gate = null;
    const child = Bun.spawn([process.execPath, MAIN, ...commandOf(args)], {
      stdout: 'ignore',
      stderr: 'ignore',
    });
    while (!existsSync(path('answers.jsonl')) || linesOf('answers.jsonl').length < 20)
      await Bun.sleep(POLL_MS);
    child.kill(signal);
    expect(await child.exited).toBe(signal === 'SIGKILL' ? 137 : 130);
    // As if the kill had cut a line.
    appendFileSync(path('answers.jsonl'), '{"id":"r299","li');
    const second = await decide(...args);
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('before')]);
    const ids = linesOf('answers.jsonl').map((line) => JSON.parse(line).id);
    expect(ids.toSorted()).toEqual(
      records(300)
        .map(({ id }) => id)
        .toSorted(),
    );
    const rows = await usageOf(service, account);
    expect(rows).toHaveLength(300);
    const spent = rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
    expect(await booksOf(service, account)).toMatchObject({
      credit_micros: CREDIT_MICROS - spent,
      held_micros: 0,
    });
  });

  test('keeps its output from a second run at the same time', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(5)]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    gate = new Gate();
    const first = decide(...args);
    await gate.reached;
    const second = await decide(...args);
    expect([second.code, second.stderr]).toEqual([
      1,
      expect.stringContaining(`Another run writes ${path('answers.jsonl')}`),
    ]);
    gate.open();
    gate = null;
    expect((await first).code).toBe(0);
    expect(linesOf('answers.jsonl')).toHaveLength(5);
  });
});

describe('mistakes are told before anything is asked', () => {
  test.each([
    ['another ending', 'records.txt', '', [], 'must end in .csv, .tsv, .jsonl, .ndjson.'],
    [
      'a broken line',
      'r.jsonl',
      `${ndjson([HEADER])}{"state":`,
      [],
      'line 2: the line is not valid JSON, at column 10.',
    ],
    [
      'an id that is none',
      'r.jsonl',
      ndjson([HEADER, { id: {}, state: 'a' }]),
      [],
      'line 2: the id must be a string',
    ],
    [
      'an id that is there twice',
      'r.jsonl',
      ndjson([HEADER, record(1), record(1)]),
      [],
      'has the id "r1" twice',
    ],
    ['a row with too many cells', 'r.csv', 'id,state\n1,a,b\n', [], 'Invalid Record Length'],
    ['no questions', 'r.csv', 'id,state\n1,a\n', [], 'missing_questions (questions)'],
    ['no record', 'r.jsonl', ndjson([HEADER]), [], 'has no record.'],
    [
      'a record with questions of its own in CSV',
      'r.jsonl',
      ndjson([HEADER, record(1), { ...record(2), ...HEADER }]),
      ['--output', 'a.csv'],
      'has questions of its own',
    ],
  ] as const)('%s', async (_, name, text, [flag, output], sentence) => {
    write(name, text);
    const more = flag === undefined || output === undefined ? [] : [flag, path(output)];
    const { code, stdout, stderr } = await decide('--batch', path(name), ...more);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(sentence)]);
    expect(await usageOf(service, account)).toEqual([]);
  });

  test('an output that is another file is not touched', async () => {
    write('records.jsonl', ndjson([HEADER, record(1)]));
    for (const [name, text] of [
      ['notes.jsonl', '{"my":"notes"}\n'],
      ['notes2.jsonl', 'my notes'],
      ['table.csv', 'name,age\r\nAnn,5\r\n'],
    ] as const) {
      write(name, text);
      const { code, stderr } = await decide('--batch', path('records.jsonl'), '--output', path(name));
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('is no file of answers to these questions'),
      ]);
      expect(read(name)).toBe(text);
    }
  });

  test.each([
    [['--output', 'a.jsonl', 'q.json'], '--output is for --batch.'],
    [['--batch', 'r.jsonl', '--local'], '--batch asks a running service'],
    [[], 'Name a JSON file with state and questions, or --batch.'],
  ])('wrong usage: %p', async (args, sentence) => {
    const { code, stderr } = await decide(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  });
});

test('a service that wants money says so, and the same command goes on after a top-up', async () => {
  account = await addRichlyLimited(service, 105);
  write('records.jsonl', ndjson([HEADER, ...records(40)]));
  const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
  const { code, stderr } = await decide(...args);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/insufficient_credit: .* \d+ records are left/)]);
  const { organization_id } = account;
  const entry = { organization_id, amount_micros: CREDIT_MICROS, entry_id: newEntryId() };
  await creditByHand(service.accounts, OPERATOR, entry);
  expect((await decide(...args)).code).toBe(0);
  expect(linesOf('answers.jsonl')).toHaveLength(40);
  const rows = await usageOf(service, account);
  expect(rows).toHaveLength(40);
  const spent = rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
  expect((await booksOf(service, account)).credit_micros).toBe(105 + CREDIT_MICROS - spent);
});
