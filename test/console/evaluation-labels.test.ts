import { describe, expect, test } from 'bun:test';
import { evaluatedQuestions, shortText } from '../../src/console/pages/evaluate/evaluated.ts';
import { isCasesFile, labelsOfCases, labelsOfTable } from '../../src/console/pages/evaluate/labels.ts';
import type { LabelColumns } from '../../src/console/pages/evaluate/setup.ts';
import { parseCase } from '../../src/eval/cases.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/json/json-value.ts';
import { readJson } from '../../src/json/read-json.ts';
import { writeJson } from '../../src/json/write-json.ts';

const QUESTIONS = objectOf({
  refund: { type: 'noul', instructions: 'Is it a refund?' },
  team: { type: 'choice', instructions: 'Which team?', criteria: { north: null, south: null } },
  urgency: { type: 'score', instructions: 'How urgent?', criteria: ['low', 'high'] },
});
const COLUMNS: LabelColumns = {
  record: 'text',
  question: null,
  answer: null,
  answers: { refund: 'refund', team: 'team', urgency: 'urgency' },
};

function objectOf(value: unknown): JsonObject<JsonValue> {
  const read = readJson(JSON.stringify(value));
  if (!isJsonObject(read)) throw new Error('not an object');
  return read;
}

function table(rows: readonly Readonly<Record<string, unknown>>[]) {
  return { columns: Object.keys(rows[0] ?? {}), rows: rows.map((row) => JSON.stringify(row)) };
}

describe('the labels of a table', () => {
  test('are read from words, numbers and JSON', () => {
    const rows = [
      { text: 'a', refund: 'yes', team: ' south ', urgency: '1' },
      { text: 'b', refund: 'FALSE', team: 'north', urgency: 'low' },
      { text: 'c', refund: true, team: 'north', urgency: 0 },
      { text: 'd', refund: '', team: 'north', urgency: null },
    ];
    const read = labelsOfTable(table(rows), QUESTIONS, COLUMNS);
    expect(read.problems).toEqual([]);
    expect(read.rows.map(({ labels }) => labels.map(({ id, answer }) => [id, answer]))).toEqual([
      [
        ['refund', 1],
        ['team', 1],
        ['urgency', 1],
      ],
      [
        ['refund', 0],
        ['team', 0],
        ['urgency', 0],
      ],
      [
        ['refund', 1],
        ['team', 0],
        ['urgency', 0],
      ],
      [['team', 0]],
    ]);
    // A question without a right answer is not asked, and so not charged.
    expect(writeJson(read.rows[3]?.questions ?? null)).toBe(
      `{"team":${writeJson(QUESTIONS.get('team') ?? null)}}`,
    );
    expect(read.rows[1]?.questions).toBe(read.rows[0]?.questions ?? null);
  });

  test('outside of the options, and rows without a record or an answer, are counted and told', () => {
    const rows = [
      { text: '', refund: 'yes', team: 'north', urgency: '1' },
      { text: 'b', refund: 'perhaps', team: 'west', urgency: '2' },
      { text: 'c', refund: '2', team: 'north', urgency: '' },
      { text: 'd', refund: '', team: '', urgency: '' },
    ];
    const read = labelsOfTable(table(rows), QUESTIONS, COLUMNS);
    expect(read.rows.map(({ row }) => row)).toEqual([3]);
    expect(read.problems).toEqual([
      'Rows without a record: 1, the first is row 1. They are left out.',
      'Right answers to "refund" that are none of its options: 2, the first is "perhaps" in row 2. They are left out.',
      'Right answers to "team" that are none of its options: 1, the first is "west" in row 2. They are left out.',
      'Right answers to "urgency" that are none of its options: 1, the first is "2" in row 2. They are left out.',
      'Rows without a right answer: 2. They are not asked.',
    ]);
  });

  test('may name their question, and all other columns may be the record', () => {
    const rows = [
      { subject: 'a', about: 'team', right: 'south' },
      { subject: 'b', about: 'refund', right: 'no' },
      { subject: 'c', about: 'colour', right: 'red' },
    ];
    const columns = { ...COLUMNS, record: null, question: 'about', answer: 'right', answers: {} };
    const read = labelsOfTable(table(rows), QUESTIONS, columns);
    expect(read.rows.map(({ record, labels }) => [writeJson(record), labels.map(({ id }) => id)])).toEqual([
      ['{"subject":"a"}', ['team']],
      ['{"subject":"b"}', ['refund']],
    ]);
    expect(read.problems).toEqual([
      'Rows whose question is not among the chosen ones: 1, the first is row 3. They are left out.',
    ]);
  });
});

describe('the labels of a cases file', () => {
  test('are those that tds eval reads', async () => {
    const text = await Bun.file(projectFile('src/eval/example-cases.jsonl')).text();
    const rows = text.trim().split('\n');
    expect(isCasesFile({ rows })).toBe(true);
    const read = labelsOfCases({ rows });
    expect(read.problems).toEqual([]);
    const of_eval = rows.map((line, at) => parseCase(line, at + 1));
    expect(
      read.rows.map(({ record, labels }) => ({ record, labels: labels.map(({ id: _, ...label }) => label) })),
    ).toEqual(of_eval.map(({ state, questions }) => ({ record: state, labels: [...questions] })));
  });

  test.each(['constructor', '__proto__'])('have the shares of an option %s, given or left out', (id) => {
    const rows = [`{"a":1,"${id}":3}`, '{"a":2}'].map(
      (soft) =>
        `{"state":"s","questions":[{"type":"choice","instructions":"Which?","criteria":{"a":null,"${id}":null},"answer":"a","soft":${soft}}]}`,
    );
    const targets = labelsOfCases({ rows }).rows.map(({ labels }) => labels[0]?.target);
    expect(targets).toEqual([
      [0.25, 0.75],
      [1, 0],
    ]);
  });

  test('do not send the right answers', () => {
    const rows = [
      '{"state":"a","questions":[{"type":"noul","instructions":"Is it?","answer":true,"soft":[0.2,0.8]}]}',
      '{"state":"b","questions":[{"type":"noul","instructions":"Is it?","answer":"perhaps"}]}',
      '{"state":"","questions":[]}',
      '{"state":"c","questions":[{"type":"score","instructions":"How?","criteria":["a","b","c"],"answer":1.5}]}',
    ];
    const read = labelsOfCases({ rows });
    expect(read.rows.map(({ questions }) => writeJson(questions))).toEqual([
      '{"q1":{"type":"noul","instructions":"Is it?"}}',
    ]);
    expect(read.rows[0]?.labels[0]?.target).toEqual([0.2, 0.8]);
    expect(read.problems).toEqual([
      'Questions whose right answer is none of their options: 2, the first in row 2. They are left out.',
      'Cases without a record or without questions: 1, the first in row 3. They are left out.',
      'Rows without a right answer: 2. They are not asked.',
    ]);
  });
});

describe('evaluated questions', () => {
  test('are one for all orders of options, with probabilities before a noul is committed', () => {
    const choice = (options: object, answer: string) => ({
      ...{ type: 'choice', instructions: 'Which team?', criteria: options, answer },
    });
    const noul = { type: 'noul', instructions: 'Is it?', answer: false };
    const rows = [
      { state: 'a', questions: [choice({ north: 1, south: 2 }, 'south'), noul] },
      { state: 'a', questions: [choice({ south: 2, north: 1 }, 'north')] },
    ].map((row) => JSON.stringify(row));
    const answers = new Map([
      [
        1,
        '{"answers":{"q1":{"type":"choice","probabilities":{"north":0.9,"south":0.1}},"q2":{"type":"noul","noul":0.0995}}}',
      ],
      [2, '{"answers":{"q1":{"type":"choice","probabilities":{"south":0.2,"north":0.8}}}}'],
    ]);
    const [team, is_it, ...none] = evaluatedQuestions(labelsOfCases({ rows }).rows, answers, ({ question }) =>
      shortText(question),
    );
    expect(none).toEqual([]);
    expect(team).toMatchObject({ name: 'Which team?', class_names: ['north', 'south'], conflicts: 1 });
    expect(
      team?.judged.map(({ row, answer, predicted, probabilities }) => ({
        row,
        answer,
        predicted,
        probabilities,
      })),
    ).toEqual([
      { row: 1, answer: 1, predicted: 0, probabilities: [0.9, 0.1] },
      { row: 2, answer: 0, predicted: 0, probabilities: [0.8, 0.2] },
    ]);
    expect(is_it?.judged[0]?.probabilities[1]).toBeCloseTo(0.25, 6);
  });

  test('leave out rows that got an error', () => {
    const rows = ['{"state":"a","questions":[{"type":"noul","instructions":"Is it?","answer":true}]}'];
    const labelled = labelsOfCases({ rows }).rows;
    expect(evaluatedQuestions(labelled, new Map([[1, '{"error":{}}']]), () => '')).toEqual([]);
    expect(evaluatedQuestions(labelled, new Map(), () => '')).toEqual([]);
  });
});
