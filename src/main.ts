#!/usr/bin/env bun
import { createProgram, runCommandLine } from './cli/program.ts';

process.exitCode = await runCommandLine(createProgram(), process.argv.slice(2));
