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
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { sendBatch as sendLines } from '../../src/cli/batch/send-batch.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { HEADER, ndjson, record, sendBatch } from '../batches/support.ts';
import { eventually } from '../support/eventually.ts';
import { Gate, intercepted, withoutTable } from '../support/faults.ts';
import { finished } from '../support/finished.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { booksOf, closeAudited, newEntryId, usageOf } from '../support/money.ts';
import { MAIN } from '../support/program.ts';
import { ALL_TYPES } from '../support/requests.ts';
import {
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  POLL_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { firstAsProcess, tds } from './support.ts';

setDefaultTimeout(4 * MODEL_TEST_TIMEOUT_MS);

const CREDIT_MICROS = 100_000_000;

let service: TestService;
let account: TestAccount;
/** Where evaluations wait; null lets them go. */
let gate: Gate | null = null;
let folder: ReturnType<typeof temporaryDirectory>;
beforeAll(async () => {
  service = await startTestService({
    openEngine: (engine) =>
      intercepted(instantEngine(engine), async (run, { signal }) => {
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
const write = (name: string, text: string | Uint8Array) => writeFileSync(path(name), text);
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const read = (name: string) => readFileSync(path(name), 'utf8');
const linesOf = (name: string) => read(name).split('\n').slice(0, -1);

function commandOf(args: readonly string[], url = service.server.address): readonly string[] {
  return ['decide', ...args, '--url', url];
}

/** The environment of a command: the API key of the account. */
const withKey = () => ({ env: { TDS_API_KEY: account.key } });

const { command } = firstAsProcess();
const decide = (...args: string[]) => command(commandOf(args), withKey());

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

  test('may have U+2028 and U+2029, which end no line, and a byte order mark', async () => {
    const line = { id: 'a\u2028b', state: 'Charged twice\u2029for one order.' };
    write('records.jsonl', `\ufeff${ndjson([HEADER, line])}`);
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    expect((await decide(...args)).code).toBe(0);
    expect(linesOf('answers.jsonl').map((text) => JSON.parse(text).id)).toEqual([line.id]);
    expect((await decide(...args)).stderr).toContain('0 of 1 records answered, 1 before');
  });

  test.each([
    ['names one', 'fast', 'fast'],
    ['names none', null, 'consistent'],
  ])('have the mode of the file where it %s, and else that of --mode', async (_, mode, expected) => {
    write('records.jsonl', ndjson([{ ...HEADER, mode }, record(0)]));
    const { stdout } = await decide('--batch', path('records.jsonl'), '--mode', 'consistent');
    expect(JSON.parse(stdout).mode).toBe(expected);
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

  test('may have blank lines first, names with spaces, and ids that are missing; an empty record is not asked', async () => {
    write('questions.json', QUESTIONS);
    write('records.csv', '\n\nid; state ;\n;Late, and again, and again;x\n ;Charged twice;y\n2;\u00a0;z\n');
    const args = [path('questions.json'), '--batch', path('records.csv'), '--output', path('a.jsonl')];
    const { code, stderr } = await decide(...args);
    expect([code, stderr]).toEqual([1, expect.stringContaining('2 of 3 records answered, 1 with errors')]);
    expect(linesOf('a.jsonl').map((line) => JSON.parse(line).id)).toEqual(
      expect.arrayContaining(['row 1', 'row 2']),
    );
    expect(linesOf('a.jsonl.errors.jsonl').map((line) => JSON.parse(line))).toMatchObject([
      { id: '2', error: { code: 'missing_state', message: 'The record is empty.' } },
    ]);
    expect(await usageOf(service, account)).toHaveLength(2);
  });
});

describe('a record that the service cannot read', () => {
  test('is not sent, has an error of its own, and all others are answered', async () => {
    const long_id = 'x'.repeat(256);
    write('questions.json', QUESTIONS);
    write('records.csv', `id,state\n1,Late\n${long_id},Late\nlarge,${'a'.repeat(1_048_576)}\n2,Late\n`);
    const args = [path('questions.json'), '--batch', path('records.csv'), '--output', path('answers.jsonl')];
    for (const sentence of ['2 of 4 records answered', '0 of 4 records answered, 2 before']) {
      const { code, stderr } = await decide(...args);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${sentence}, 2 with errors`)]);
      const errors = linesOf('answers.jsonl.errors.jsonl').map((line) => JSON.parse(line));
      // A line of a request has a number.
      expect(errors.map(({ id, line, error }) => [id, line, error.code])).toEqual([
        [long_id, undefined, 'invalid_request'],
        ['large', undefined, 'request_too_large'],
      ]);
    }
    expect(linesOf('answers.jsonl').map((line) => JSON.parse(line).id)).toEqual(
      expect.arrayContaining(['1', '2']),
    );
  });

  test('is known by its line where the answer has no id, which ends no batch', async () => {
    write('records.jsonl', ndjson([HEADER, record(1), record(2)]));
    const error = {
      type: 'invalid_request_error',
      code: 'request_too_large',
      message: 'Too large.',
      param: null,
    };
    using stub = Bun.serve({
      port: 0,
      async fetch(request) {
        const lines = (await request.text()).trim().split('\n');
        const ids = lines.map((text) => JSON.parse(text).id);
        return new Response(
          ndjson([
            { id: null, line: ids.indexOf('r1') + 1, request_id: 'req_1', error },
            { id: 'r2', line: ids.indexOf('r2') + 1, request_id: 'req_2', object: 'decision' },
          ]),
        );
      },
    });
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    const { code, stderr } = await command(commandOf(args, stub.url.origin), withKey());
    expect([code, stderr]).toEqual([1, expect.stringContaining('1 of 2 records answered, 1 with errors')]);
    expect(linesOf('answers.jsonl.errors.jsonl').map((text) => JSON.parse(text))).toEqual([
      { id: 'r1', line: 2, request_id: 'req_1', error },
    ]);
  });
});

describe('a run that was interrupted', () => {
  test.each(['SIGKILL', 'SIGINT'] as const)('by %s goes on: no record is charged twice', async (signal) => {
    write('records.jsonl', ndjson([HEADER, ...records(300)]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    gate = null;
    const child = Bun.spawn([process.execPath, MAIN, ...commandOf(args)], {
      env: { ...process.env, ...withKey().env },
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

  test('goes on wherever its first answer was cut', async () => {
    const line = { id: 'a "quoted" id', state: 'Charged twice.' };
    write('records.jsonl', ndjson([HEADER, line]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    expect((await decide(...args)).code).toBe(0);
    const answer = read('answers.jsonl');
    for (const length of [...Array(40).keys(), answer.length - 2, answer.length - 1]) {
      write('answers.jsonl', answer.slice(0, length));
      expect([length, (await decide(...args)).code]).toEqual([length, 0]);
      expect(linesOf('answers.jsonl')).toHaveLength(1);
    }
  });

  test('by a lost connection goes on without an output file, too: no record is charged twice', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(20)]));
    let requests = 0;
    using proxy = Bun.serve({
      port: 0,
      async fetch(request) {
        const key = request.headers.get('idempotency-key');
        const headers: Record<string, string> = key === null ? {} : { 'idempotency-key': key };
        const answered = await sendBatch(service, account.key, await request.text(), { headers });
        const answers = await answered.text();
        requests += 1;
        // All are charged, and the first few arrive.
        return new Response(requests === 1 ? answers.slice(0, answers.length / 3) : answers);
      },
    });
    const { code, stdout } = await command(
      commandOf(['--batch', path('records.jsonl')], proxy.url.origin),
      withKey(),
    );
    expect([code, requests]).toEqual([0, 2]);
    expect(stdout.split('\n')).toHaveLength(21);
    expect(await usageOf(service, account)).toHaveLength(20);
  });

  test('by a restart behind a proxy goes on: the proxy answers 502 meanwhile', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(3)]));
    let requests = 0;
    using proxy = Bun.serve({
      port: 0,
      async fetch(request) {
        requests += 1;
        if (requests === 1) return new Response('', { status: 502 });
        return await sendBatch(service, account.key, await request.text());
      },
    });
    const { code, stderr } = await command(
      commandOf(['--batch', path('records.jsonl')], proxy.url.origin),
      withKey(),
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining('3 of 3 records answered')]);
  });

  test('by a full disk says so, also where only the last answer is cut, and goes on', async () => {
    // An answer of more than 1 KB.
    const questions = Object.fromEntries(
      Array.from({ length: 20 }, (_, number) => [`${'question'.repeat(6)}${number}`, { type: 'noul' }]),
    );
    write('records.jsonl', ndjson([{ questions }, record(0)]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    // The limit of a file's size cuts a write short as a full disk does.
    const limited = `trap '' XFSZ; ulimit -f 1; exec "$@"`;
    const child = Bun.spawn(['sh', '-c', limited, 'sh', process.execPath, MAIN, ...commandOf(args)], {
      env: { ...process.env, ...withKey().env },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const { code, stderr } = await finished(child);
    const sentence =
      /answers\.jsonl cannot be written \(EFBIG\)\. 1 records are left: the same command goes on/;
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
    expect(read('answers.jsonl')).not.toEndWith('\n');
    expect((await decide(...args)).code).toBe(0);
    expect(linesOf('answers.jsonl').map((line) => JSON.parse(line).id)).toEqual(['r0']);
    expect(await usageOf(service, account)).toHaveLength(1);
  });

  test('sends empty lines while it passes over records with answers, and knows each line by its number', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(2_502)]));
    const answered = records(2_502).slice(1, -1);
    write('answers.jsonl', ndjson(answered.map(({ id }) => ({ id, line: 2, object: 'decision' }))));
    const error = { type: 'overloaded_error', code: 'overloaded', message: 'Busy.', param: null };
    let sent: readonly string[] = [];
    using stub = Bun.serve({
      port: 0,
      async fetch(request) {
        sent = (await request.text()).split('\n').slice(0, -1);
        const asked = sent.flatMap((text, at) => (text.includes('state') ? [at + 1] : []));
        return new Response(ndjson(asked.map((line) => ({ id: null, line, request_id: 'req_1', error }))));
      },
    });
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    await command(commandOf(args, stub.url.origin), withKey());
    expect(sent.map((text) => (text === '' ? null : JSON.parse(text).id))).toEqual([
      undefined,
      'r0',
      ...Array.from({ length: 25 }, () => null),
      'r2501',
    ]);
    const failed = linesOf('answers.jsonl.errors.jsonl').map((text) => JSON.parse(text));
    expect(failed.map(({ id, line }) => [id, line])).toEqual([
      ['r0', 2],
      ['r2501', 28],
    ]);
  });

  test('keeps its output from a second run at the same time', async () => {
    write('records.jsonl', ndjson([HEADER, ...records(5)]));
    const args = ['--batch', path('records.jsonl'), '--output', path('answers.jsonl')];
    gate = new Gate();
    const first = tds(commandOf(args), withKey());
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
      'a record that is nested too deeply',
      'r.jsonl',
      ndjson([HEADER, `{"state":${'['.repeat(65)}${']'.repeat(65)}}`]),
      [],
      'line 2: the line is nested deeper than 65 levels.',
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
    ['two columns of one name', 'r.csv', 'id,a,a\n1,b,c\n', [], 'r.csv: two columns have the name "a"'],
    ['a row with too many cells', 'r.csv', 'id,state\n1,a,b\n', [], 'Invalid Record Length'],
    ['no questions', 'r.csv', 'id,state\n1,a\n', [], 'missing_questions (questions)'],
    ['no record', 'r.jsonl', ndjson([HEADER]), [], 'has no record.'],
    [
      'bytes that are no UTF-8',
      'r.jsonl',
      latin1('{"state":"M\xfcnchen"}\n'),
      [],
      'r.jsonl is not a text in UTF-8',
    ],
    ['such bytes in CSV', 'r.csv', latin1('id,state\n1,M\xfcnchen\n'), [], 'r.csv is not a text in UTF-8'],
    ['a last character that is cut', 'r.csv', latin1('state\nM\xc3'), [], 'r.csv is not a text in UTF-8'],
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

  test('an output that cannot be opened leaves no lock', async () => {
    write('records.jsonl', ndjson([HEADER, record(1)]));
    mkdirSync(path('answers.jsonl'));
    const { code, stderr } = await decide(
      '--batch',
      path('records.jsonl'),
      '--output',
      path('answers.jsonl'),
    );
    expect([code, stderr]).toEqual([1, `tds: ${path('answers.jsonl')} cannot be written (EISDIR).\n`]);
    expect(existsSync(path('answers.jsonl.lock'))).toBe(false);
  });

  test('an output that is another file is not touched', async () => {
    write('records.jsonl', ndjson([HEADER, record(1)]));
    for (const [name, text] of [
      ['notes.jsonl', '{"my":"notes"}\n'],
      ['notes2.jsonl', 'my notes'],
      // Without an end of the line, they begin as an answer does.
      ['records2.jsonl', '{"id":1,"state":"a record"}'],
      ['records3.jsonl', '{"id":"1\\"","state":"a record'],
      ['lines.jsonl', '{"id":1,"line":1}'],
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
    [['--batch', 'r.jsonl', '--model', 'decision-2'], '--model names the weights of --local'],
    [['q.json', '--model', 'decision-2'], '--model names the weights of --local'],
    [[], 'Name a JSON file with state and questions, or --batch.'],
  ])('wrong usage: %p', async (args, sentence) => {
    const { code, stderr } = await decide(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  });
});

test('an organization that may have more questions than any tier is not refused here', async () => {
  const { organization_id } = account;
  await setTierSettings(service.accounts, OPERATOR, organization_id, { questions_per_request: 65 });
  const questions = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`q${index}`, { type: 'noul' }]));
  write('records.jsonl', ndjson([{ questions: questions(65) }, record(0)]));
  expect(await decide('--batch', path('records.jsonl'))).toMatchObject({ code: 0 });
  write('records.jsonl', ndjson([{ questions: questions(66) }, record(0)]));
  const { code, stderr } = await decide('--batch', path('records.jsonl'));
  expect([code, stderr]).toEqual([1, expect.stringContaining('has 66 questions; the tier')]);
});

test.each([
  ['auth_unavailable', 'api_keys', 'authenticate'],
  ['catalog_unavailable', 'models', 'catalog'],
] as const)('a service that refuses with %s is asked again', async (_, table, step) => {
  write('records.jsonl', ndjson([HEADER, record(0)]));
  const { problems } = service.service.services;
  const before = problems.counts()[step];
  const asked = await withoutTable(service, table, async () => {
    const run = decide('--batch', path('records.jsonl'));
    await eventually(() => problems.counts()[step] > before);
    return { run };
  });
  expect(await asked.run).toMatchObject({ code: 0, stderr: expect.stringContaining('1 of 1 records') });
});

test('no request is open before its first line is there', async () => {
  let requests = 0;
  using stub = Bun.serve({
    port: 0,
    fetch: () => {
      requests += 1;
      return new Response('');
    },
  });
  const target = { service: stub.url.origin, key: 'key', idempotency_key: 'run' };
  const lines = { next: () => Promise.reject(new Error('no line')) };
  const { signal } = new AbortController();
  await expect(sendLines({ ...target, signal }, lines).next()).rejects.toThrow('no line');
  expect(requests).toBe(0);
});

test.each([
  ['HTML in place of answers', 200, '<html>\n</html>\n'],
  ['a page that is not there', 404, '<html></html>'],
])('a server that is no such service is named: %s', async (_, status, body) => {
  write('records.jsonl', ndjson([HEADER, record(0)]));
  using other = Bun.serve({ port: 0, fetch: () => new Response(body, { status }) });
  const args = commandOf(['--batch', path('records.jsonl')], other.url.origin);
  const { code, stderr } = await command(args, withKey());
  const sentence = `tds: What answers at ${other.url.origin} is not this service (HTTP ${status}). 1 records are left.`;
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
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
