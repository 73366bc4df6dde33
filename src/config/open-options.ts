import type { OpenOptions } from '../../native/engine.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import type { UpstreamVocabulary } from '../store/catalog-records.ts';
import type { ModelConfig } from './settings.ts';

/** Returns the options of `openEngine` from the settings of a model. */
export function openOptions(config: ModelConfig): OpenOptions {
  return {
    model_path: config.model,
    gpu: config.gpu,
    threads: config.threads === 'auto' ? undefined : config.threads,
    evaluator: config.evaluator,
    deterministic: config.deterministic,
    prefix_cache_bytes:
      config.prefixCache === undefined ? undefined : config.prefixCache * BYTES_PER_MEGABYTE,
    // On standard error, because standard output may be JSON.
    onBuild: () =>
      process.stderr.write('Compiling the addon, once on this machine; this can take a minute.\n'),
  };
}

/** Returns the options of `openScoringPlanner` for the vocabulary of an upstream's model. */
export function vocabularyOptions(
  { path, sha256, profile }: UpstreamVocabulary,
  context_tokens: number,
  config: Omit<ModelConfig, 'model'>,
): OpenOptions {
  return {
    ...openOptions({ ...config, model: path }),
    expected: { weights_sha256: sha256, profile },
    context_tokens,
  };
}
