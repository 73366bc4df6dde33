import { expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startChildServer } from '../support/child-server.ts';
import { openFiles } from '../support/process-files.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Words that occur nowhere unless a request brought them. */
function marker(place: string): string {
  return `Xq${place}Zv${crypto.randomUUID().replaceAll('-', '')}`;
}

const STATE = marker('state');
const QUESTION_ID = marker('questionid');
const INSTRUCTIONS = marker('instructions');
const OPTION = marker('option');
const LEVEL = marker('level');
const FIELD = marker('field');
const MODEL = marker('model');
const MODE = marker('mode');
const PATH = marker('path');
const QUERY = marker('query');
const HEADER = marker('header');
const MARKERS = [STATE, QUESTION_ID, INSTRUCTIONS, OPTION, LEVEL, FIELD, MODEL, MODE, PATH, QUERY, HEADER];

const QUESTIONS = {
  [QUESTION_ID]: { type: 'choice', instructions: INSTRUCTIONS, criteria: { [OPTION]: OPTION, b: null } },
  levels: { type: 'score', instructions: INSTRUCTIONS, criteria: [LEVEL, 'high'] },
};
const GOOD = { model: 'decision-1', state: { [FIELD]: STATE }, questions: QUESTIONS, extra: FIELD };

/** Requests of every outcome that a client alone can bring about, each with markers wherever they fit. */
const BODIES: readonly string[] = [
  JSON.stringify(GOOD),
  JSON.stringify({ ...GOOD, mode: 'consistent' }),
  JSON.stringify({ ...GOOD, state: STATE.repeat(20) }),
  `${JSON.stringify(GOOD)}}`,
  JSON.stringify({ ...GOOD, state: STATE.repeat(100_000) }),
  JSON.stringify({ ...GOOD, model: MODEL }),
  JSON.stringify({ ...GOOD, mode: MODE }),
  JSON.stringify({ ...GOOD, questions: { [QUESTION_ID]: { type: INSTRUCTIONS } } }),
  JSON.stringify({
    ...GOOD,
    questions: { [QUESTION_ID]: { type: 'choice', criteria: { [OPTION]: OPTION } } },
  }),
  JSON.stringify({ ...GOOD, questions: { [QUESTION_ID]: { type: 'noul', criteria: [LEVEL] } } }),
  JSON.stringify({
    ...GOOD,
    questions: Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`${QUESTION_ID}${index}`, { type: 'noul' }]),
    ),
  }),
  JSON.stringify({ ...GOOD, state: nested(100) }),
  JSON.stringify({ ...GOOD, state: undefined }),
];

function nested(levels: number): unknown {
  return levels === 0 ? STATE : { [FIELD]: nested(levels - 1) };
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test('5. records, questions and answers are nowhere: database, WAL, temporary files, logs', async () => {
  const data = temporaryDirectory();
  const temporary = temporaryDirectory();
  const server = await startChildServer(data.path, temporary.path, ['--log-level', 'info'], {
    embedded: true,
  });
  try {
    const statuses = new Set<number>();
    for (const path of ['/v1/decisions', '/v1/systemone', `/v1/decisions?mode=${QUERY}`, `/${PATH}`]) {
      for (const body of BODIES) {
        const response = await fetch(`${server.address}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${server.key}`, 'x-note': HEADER, 'user-agent': HEADER },
          body,
        });
        await response.text();
        statuses.add(response.status);
      }
    }
    const wrongKey = await fetch(`${server.address}/v1/decisions`, {
      method: 'POST',
      headers: { authorization: `Bearer sk_svc_${HEADER}${HEADER}` },
      body: JSON.stringify(GOOD),
    });
    statuses.add(wrongKey.status);
    expect([...statuses].sort()).toEqual([200, 400, 401, 404, 413, 422]);

    const expectNoMarker = (name: string, content: Buffer) => {
      for (const found of MARKERS)
        expect([name, found, content.includes(found)]).toEqual([name, found, false]);
      expect([name, content.includes(server.key ?? '')]).toEqual([name, false]);
    };
    const files = [...filesIn(data.path), ...filesIn(temporary.path)];
    expect(files.filter((path) => path.includes('tds.sqlite')).length).toBeGreaterThanOrEqual(2);
    for (const path of [...files, ...openFiles(server.pid)]) expectNoMarker(path, readFileSync(path));

    expect(await server.stop()).toBe(0);
    const log = server.output().replace(/^\{\n[\s\S]*?\n\}\n/m, '');
    expect(log).toContain('"status":200');
    expect(log).toContain('"code":"invalid_json"');
    expectNoMarker('log', Buffer.from(log));
    for (const path of [...filesIn(data.path), ...filesIn(temporary.path)])
      expectNoMarker(path, readFileSync(path));
  } finally {
    await server.stop();
    data.remove();
    temporary.remove();
  }
});
