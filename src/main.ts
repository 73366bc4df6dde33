#!/usr/bin/env bun
import { forbidCoreDumps } from './cli/core-dumps.ts';
import { beEndedFirst } from './cli/oom-score.ts';
import { createProgram, runCommandLine } from './cli/program.ts';
import { WEIGHTS_TRIAL } from './cli/weights-trial.ts';
import { systemErrorCode } from './errors/system-error-code.ts';
import { standardOutput } from './log/standard-output.ts';

/** The exit code that shells report for a program that a closed pipe ended: 128 and the number of SIGPIPE. */
const EXIT_CLOSED_PIPE = 141;

// A process without core dumps may not write its own OOM score, so this comes first.
if (process.argv[2] === WEIGHTS_TRIAL) beEndedFirst();

// Every command does this before it has a secret in memory.
forbidCoreDumps();

// An unwritable standard error is ignored: there is no other place to report it.
process.stderr.on('error', () => {});

// `tds … | head` ends with its reader. A server goes on, because it serves its clients without its log too.
process.stdout.on('error', (error) => {
  if (standardOutput.isUsed) return;
  const code = systemErrorCode(error) ?? '';
  if (code === 'EPIPE') process.exit(EXIT_CLOSED_PIPE);
  process.stderr.write(`tds: Standard output cannot be written (${code}).\n`);
  process.exit(1);
});

process.exitCode = await runCommandLine(createProgram(), process.argv.slice(2));
// Unread output would keep the process alive.
if (standardOutput.isStuck) process.exit();
