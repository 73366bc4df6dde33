import { expect, test } from 'bun:test';
import { type Destination, matches, SHOWN_MAX } from '../../src/console/pages/palette/matches.ts';

const place = (kind: string, label: string, words = ''): Destination => ({ kind, label, words, href: label });
const ALL = [
  place('Page', 'Keys'),
  place('Page', 'Usage'),
  place('Key', 'Support inbox', 'sk_svc_abcde Checkout'),
  place('Project', 'In-house support'),
];
const found = (text: string) => matches(ALL, text).map(({ label }) => label);

test('a destination is found by every word of the text, in its kind, its label and its other words', () => {
  expect(found('')).toEqual(ALL.map(({ label }) => label));
  expect(found(' KEY ')).toEqual(['Keys', 'Support inbox']);
  expect(found('checkout key')).toEqual(['Support inbox']);
  expect(found('sk_svc_abc')).toEqual(['Support inbox']);
  expect(found('support nothing')).toEqual([]);
});

test('those that begin with the text come first, and no more than fit', () => {
  expect(found('in')).toEqual(['In-house support', 'Support inbox']);
  const many = Array.from({ length: 40 }, (_, index) => place('Key', `Key ${index}`));
  expect(matches(many, 'key')).toEqual(many.slice(0, SHOWN_MAX));
});

test('the exact hit comes first, then those that begin with the text, and an id is found by its beginning only', () => {
  const projects = ['Project 330', 'Old Project 33', 'Project 33', 'Project 3'].map((label) =>
    place('Project', label, `proj_a33${label.length}`),
  );
  const key = place('Key', 'Server', 'sk_svc_33abc Project 33 key_z33');
  const labels = (text: string) => matches([key, ...projects], text).map(({ label }) => label);
  expect(labels('project 33')).toEqual(['Project 33', 'Project 330', 'Old Project 33', 'Server']);
  expect(labels(' Project  33 ')).toEqual(labels('project 33'));
  expect(labels('proj_a339')).toEqual(['Project 3']);
  expect(labels('a33')).toEqual([]);
});
