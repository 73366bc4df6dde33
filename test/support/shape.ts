/** Fields whose values say what a thing is or costs, and do not hang on the last digits of a model's numbers. */
const KEPT: readonly string[] = [
  ...['type', 'object', 'code', 'param', 'mode', 'model', 'name', 'choice', 'decision'],
  ...['input_tokens', 'read_tokens', 'total_tokens', 'cost_usd'],
];

/**
 * The part of an answer in JSON that is the same on every machine: names, lengths of lists, kinds of values, `KEPT`,
 * the side of a yes/no answer, and the level nearest to a score.
 */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null) return null;
  if (typeof value !== 'object') return typeof value;
  const shape = Object.entries(value).map(([name, member]) => [
    name,
    KEPT.includes(name) && typeof member !== 'object' ? member : shapeOf(member),
  ]);
  return Object.fromEntries([...shape, ...decidedBy(value)]);
}

/** The decision of an answer in either shape of the API, beside its fields. */
function decidedBy(answer: object): readonly (readonly [string, boolean | number])[] {
  if ('noul' in answer) return [['is_yes', Number(answer.noul) > 0.5]];
  if ('score' in answer) return [['level', Math.round(Number(answer.score))]];
  return 'type' in answer && answer.type === 'predicate' && 'probability' in answer
    ? [['is_yes', Number(answer.probability) > 0.5]]
    : [];
}
