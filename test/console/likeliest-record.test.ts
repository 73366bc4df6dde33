import { expect, test } from 'bun:test';
import { likeliestRecord } from '../../src/console/pages/rows/likeliest-record.ts';

test.each([
  [['anything'], 'anything'],
  [['id', 'state', 'message'], 'state'],
  [['id', 'customer message', 'team'], 'customer message'],
  [['Ticket-Message', 'id'], 'Ticket-Message'],
  [['reviewText', 'stars'], 'reviewText'],
  [['message', 'reply message'], 'message'],
  [['reply message', 'message'], 'message'],
  [['message id', 'text_length', 'team'], null],
  [['name', 'team'], null],
  [[], null],
])('of the columns %j the record is most likely in %j', (columns, likeliest) => {
  expect(likeliestRecord(columns)).toBe(likeliest);
});
