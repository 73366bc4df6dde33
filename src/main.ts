#!/usr/bin/env bun
import { createProgram, runCommandLine } from './cli/program.ts';
import { standardOutput } from './ops/standard-output.ts';

// Where standard error cannot be written there is nobody to tell, and nothing to stop for.
process.stderr.on('error', () => {});

process.exitCode = await runCommandLine(createProgram(), process.argv.slice(2));
// Output that nobody reads would keep the process alive.
if (standardOutput.isStuck) process.exit();
