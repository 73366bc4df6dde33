/** Its signal is aborted when a stop begins: running requests are finished, and new ones are refused. */
export type Draining = Pick<AbortController, 'signal'>;
