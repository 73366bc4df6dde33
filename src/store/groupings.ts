/** The columns by which the requests of a chart can be grouped. */
export const GROUPINGS = ['status', 'project', 'key', 'model', 'mode'] as const;

export type Grouping = (typeof GROUPINGS)[number];
