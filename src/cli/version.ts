import { EMBEDDED_WEIGHTS, evaluatorRelease, verifyWeights, WeightsError } from '../../native/engine.ts';
import { buildInfo } from '../program/build-info.ts';
import { inOneSentence } from './command-failed.ts';
import { printLine } from './output.ts';

const ADDON_STATES = {
  prebuilt: 'addon (compiled already)',
  built: 'addon (compiled here)',
  absent: 'addon (compiled at the first start, where there is a C++ compiler)',
  unavailable: 'node-llama-cpp',
} as const;

/**
 * Prints `tds --version`: version, commit, evaluator with llama.cpp's release, and the hash of the embedded
 * weights. Throws `CommandFailed` when these are damaged.
 */
export async function printVersion(): Promise<void> {
  const { version, commit } = buildInfo();
  const { addon, llama_cpp } = await evaluatorRelease();
  const { sha256 } = await inOneSentence([WeightsError], () => verifyWeights(EMBEDDED_WEIGHTS));
  printLine(`tds ${version}`);
  printLine(`commit ${commit}`);
  printLine(`evaluator ${ADDON_STATES[addon]}, llama.cpp ${llama_cpp}`);
  printLine(`weights decision-1, SHA-256 ${sha256}`);
}
