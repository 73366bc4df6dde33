import { join } from 'node:path';
import { type AddonState, addonState } from './addon/build.ts';
import { findLibrary } from './addon/library.ts';

/** The evaluator of this program, whatever the machine's devices. */
export interface EvaluatorRelease {
  readonly addon: AddonState;
  /** The release of llama.cpp, as its project names it. */
  readonly llama_cpp: string;
}

interface BuildMetadata {
  readonly buildOptions: { readonly llamaCpp: { readonly release: string } };
}

/**
 * Resolves with the state of the addon, and the release of llama.cpp that it and node-llama-cpp use. Loads and builds
 * nothing.
 */
export async function readEvaluatorRelease(): Promise<EvaluatorRelease> {
  const library = findLibrary('auto');
  if (library === undefined) return { addon: 'unavailable', llama_cpp: 'unknown' };
  const metadata: BuildMetadata = await Bun.file(join(library.directory, '_nlcBuildMetadata.json')).json();
  return { addon: await addonState(library), llama_cpp: metadata.buildOptions.llamaCpp.release };
}
