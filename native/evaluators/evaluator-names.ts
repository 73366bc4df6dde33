/** The evaluators, in the order in which `auto` tries them: in C++, and through node-llama-cpp's objects. */
export const EVALUATOR_NAMES = ['addon', 'llama'] as const;
export type EvaluatorName = (typeof EVALUATOR_NAMES)[number];

/** The choice of an evaluator: the first that works here (`auto`), or one by name. */
export const EVALUATOR_CHOICES = ['auto', ...EVALUATOR_NAMES] as const;
export type EvaluatorChoice = (typeof EVALUATOR_CHOICES)[number];
