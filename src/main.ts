#!/usr/bin/env bun
import { forbidCoreDumps } from './cli/core-dumps.ts';
import { beEndedFirst } from './cli/ended-first.ts';
import { createProgram, runCommandLine } from './cli/program.ts';
import { WEIGHTS_TRIAL } from './cli/weights-trial.ts';
import { standardOutput } from './ops/standard-output.ts';
import { systemErrorCode } from './system-error-code.ts';

/** What shells report of a program that a closed pipe ended: 128 and the number of SIGPIPE. */
const EXIT_CLOSED_PIPE = 141;

// Only now: a process without core dumps may not write its own score.
if (process.argv[2] === WEIGHTS_TRIAL) beEndedFirst();

// Before anything secret is in memory, for every command.
forbidCoreDumps();

// Where standard error cannot be written there is nobody to tell, and nothing to stop for.
process.stderr.on('error', () => {});

// `tds … | head` ends with its reader. A server goes on: it is there for its clients, not for its log.
process.stdout.on('error', (error) => {
  if (standardOutput.isUsed) return;
  const code = systemErrorCode(error) ?? '';
  if (code === 'EPIPE') process.exit(EXIT_CLOSED_PIPE);
  process.stderr.write(`tds: Standard output cannot be written (${code}).\n`);
  process.exit(1);
});

process.exitCode = await runCommandLine(createProgram(), process.argv.slice(2));
// Output that nobody reads would keep the process alive.
if (standardOutput.isStuck) process.exit();
