import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Question } from '../../src/questions/question.ts';
import { classScores, engineScores, identityOf } from '../../src/tuning/question-identity.ts';
import { choiceOf } from './support.ts';

const ids = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 2, maxLength: 8 });

test('the order of options changes neither the key nor the classes, and scores come back to their options', () => {
  fc.assert(
    fc.property(ids, fc.infiniteStream(fc.integer()), (names, drawn) => {
      const ranked = names.map((name) => ({ name, rank: drawn.next().value }));
      const turned = ranked.toSorted((one, other) => one.rank - other.rank).map(({ name }) => name);
      const [one, other] = [choiceOf(names), choiceOf(turned)];
      const [identity, turned_identity] = [identityOf(one), identityOf(other)];
      expect(turned_identity.key).toBe(identity.key);
      expect(turned_identity.classes).toEqual(identity.classes);
      const scores = names.map((_, at) => at * 1.25);
      const by_class = classScores(one, identity, scores);
      expect(engineScores(one, identity, by_class)).toEqual(scores);
      const turned_scores = turned.map((name) => scores[names.indexOf(name)] ?? 0);
      expect(engineScores(other, turned_identity, by_class)).toEqual(turned_scores);
    }),
  );
});

test('whatever else a question says changes the key', () => {
  const noul: Question = { type: 'noul', instructions: 'Is it?', yes: 'it is', no: undefined };
  const score: Question = { type: 'score', instructions: 'Is it?', levels: ['low', 'high'] };
  const choice = choiceOf(['a', 'b']);
  const others: readonly Question[] = [
    noul,
    { ...noul, instructions: 'Is it so?' },
    { ...noul, yes: undefined, no: 'it is' },
    { ...noul, no: 'it is not' },
    score,
    { ...score, levels: ['high', 'low'] },
    choice,
    { ...choice, instructions: 'Is it?' },
    choiceOf(['a', 'b', 'c']),
    { ...choice, options: choice.options.map(({ id }) => ({ id, description: null })) },
  ];
  expect(new Set(others.map((question) => identityOf(question).key)).size).toBe(others.length);
});

test('the scores of a noul keep their difference', () => {
  const noul: Question = { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined };
  const identity = identityOf(noul);
  expect(engineScores(noul, identity, classScores(noul, identity, [-1.75]))).toEqual([-1.75]);
});
