/** Fields whose values say what a thing is or costs, and do not hang on the last digits of a model's numbers. */
const KEPT: readonly string[] = [
  ...['type', 'object', 'code', 'param', 'mode', 'model', 'name', 'choice', 'decision'],
  ...['input_tokens', 'read_tokens', 'total_tokens', 'cost_usd'],
];

/** The part of an answer in JSON that is the same on every machine: names, lengths of lists, kinds of values, `KEPT`. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null) return null;
  if (typeof value !== 'object') return typeof value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      KEPT.includes(name) && typeof member !== 'object' ? member : shapeOf(member),
    ]),
  );
}
