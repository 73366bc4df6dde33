import type { JsonValue } from './json.ts';
import type { DecisionInput } from './profile.ts';
import { PlanRejected } from './profile.ts';
import type { Question } from './question.ts';

/** Levels of objects and arrays that a value may have: rendering indents by level, so depth costs its square. */
export const MAX_DEPTH = 64;

type Container = Exclude<JsonValue, string | number | boolean | null>;

function isContainer(value: JsonValue): value is Container {
  return value !== null && typeof value === 'object';
}

/**
 * How many levels of objects and arrays a value has; 0 for a scalar. Iterates, so that depth costs no stack, and keeps
 * no scalars, of which a body may have hundreds of thousands.
 */
export function depth(value: JsonValue): number {
  let level: readonly Container[] = isContainer(value) ? [value] : [];
  for (let levels = 0; ; levels += 1) {
    const deeper: Container[] = [];
    let has_items = false;
    for (const container of level) {
      const items: readonly JsonValue[] = Array.isArray(container) ? container : Object.values(container);
      has_items ||= items.length > 0;
      for (const item of items) if (isContainer(item)) deeper.push(item);
    }
    if (!has_items) return levels;
    level = deeper;
  }
}

function questionValues(question: Question): readonly (JsonValue | undefined)[] {
  switch (question.type) {
    case 'noul':
      return [question.instructions, question.yes, question.no];
    case 'choice':
      return [question.instructions, ...question.options.map((option) => option.description)];
    case 'score':
      return [question.instructions, ...question.levels];
  }
}

/** Throws `PlanRejected` when the record, instructions or a description is nested deeper than `MAX_DEPTH`. */
export function rejectDeepNesting(input: DecisionInput): void {
  if (depth(input.state) > MAX_DEPTH) {
    throw new PlanRejected(`The record is nested deeper than ${MAX_DEPTH} levels.`, null);
  }
  input.questions.forEach((question, index) => {
    if (questionValues(question).some((value) => value !== undefined && depth(value) > MAX_DEPTH)) {
      throw new PlanRejected(`The question is nested deeper than ${MAX_DEPTH} levels.`, index);
    }
  });
}
