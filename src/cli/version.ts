import { EMBEDDED_WEIGHTS, evaluatorRelease, verifyWeights, WeightsError } from '../../native/engine.ts';
import { buildInfo } from '../program/build-info.ts';
import { CommandFailed } from './command-failed.ts';
import { printLine } from './output.ts';

const ADDON_STATES = {
  prebuilt: 'addon (compiled already)',
  built: 'addon (compiled here)',
  absent: 'addon (compiled at the first start, where there is a C++ compiler)',
  unavailable: 'node-llama-cpp',
} as const;

/** Returns the hash of the embedded weights. Throws `CommandFailed` when they are damaged. */
async function weightsHash(): Promise<string> {
  try {
    return (await verifyWeights(EMBEDDED_WEIGHTS)).sha256;
  } catch (error) {
    if (error instanceof WeightsError) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

/**
 * Prints `tds --version`: version, commit, evaluator with llama.cpp's release, and the hash of the embedded
 * weights.
 */
export async function printVersion(): Promise<void> {
  const { version, commit } = buildInfo();
  const { addon, llama_cpp } = await evaluatorRelease();
  const sha256 = await weightsHash();
  printLine(`tds ${version}`);
  printLine(`commit ${commit}`);
  printLine(`evaluator ${ADDON_STATES[addon]}, llama.cpp ${llama_cpp}`);
  printLine(`weights decision-1, SHA-256 ${sha256}`);
}
