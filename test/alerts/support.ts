import { noProblems, type Problems } from '../../src/problems/problems.ts';

/** Fails the test at the first problem. */
export const noProblemsExpected: Problems = {
  report: ({ error }) => {
    throw error;
  },
  counts: noProblems,
};
