import type { OpenOptions } from '../../native/engine.ts';
import type { ModelConfig } from './settings.ts';

/** What `openEngine` takes, of the settings of a model. */
export function openOptions(config: ModelConfig): OpenOptions {
  return {
    model_path: config.model,
    gpu: config.gpu,
    threads: config.threads,
    evaluator: config.evaluator,
    deterministic: config.deterministic,
    // On standard error, because standard output may be JSON.
    onBuild: () =>
      process.stderr.write('Compiling the addon, once on this machine; this can take a minute.\n'),
  };
}
