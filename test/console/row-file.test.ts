import { expect, test } from 'bun:test';
import { cellsOf, readRowFile, recordOf } from '../../src/console/pages/rows/row-file.ts';
import { writeJson } from '../../src/json/write-json.ts';

test('the numbers of a JSONL file keep every digit, in the record, in one of a column and in the download', async () => {
  const line = '{"order":9007199254740993,"sum":1e400,"small":7}';
  const file = await readRowFile(new File([line], 'orders.jsonl'));
  if (typeof file === 'string') throw new Error(file);
  const [row = ''] = file.rows;
  expect(writeJson(recordOf(row, null))).toBe('{"order":"9007199254740993","sum":"1e400","small":7}');
  expect(recordOf(row, 'order')).toBe('9007199254740993');
  expect(cellsOf(row, file.columns)).toEqual(['9007199254740993', '1e400', '7']);
});

test('a CSV file may begin with blank lines', async () => {
  const file = await readRowFile(new File(['\n\nid;text\n1;Late, again, again\n'], 'a.csv'));
  expect(file).toMatchObject({ columns: ['id', 'text'], rows: ['{"id":"1","text":"Late, again, again"}'] });
});
