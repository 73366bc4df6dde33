import { holdSignals } from '../../src/program/held-signals.ts';

/** Holds signals until something comes on standard input, and then prints those that the first listeners get. */
holdSignals(['SIGHUP', 'SIGTERM']);
process.stdin.on('data', () => {
  for (const signal of ['SIGHUP', 'SIGTERM'] as const) process.on(signal, (name) => console.log(name));
});
console.log('held');
