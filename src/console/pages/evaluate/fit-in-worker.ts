import type { FitInput, TuningFit } from './fit-tuning.ts';
import type { FitMessage } from './fit-worker.ts';

/** The path of the bundled `fit-worker.ts`, which the bundler puts here. */
declare const FIT_WORKER_PATH: string;

/**
 * Fits in a worker, so that the page can be used meanwhile. Resolves with the corrections. Rejects when the worker fails,
 * or the signal is aborted.
 */
export function fitInWorker(
  input: FitInput,
  {
    signal,
    onProgress,
  }: { readonly signal: AbortSignal; readonly onProgress: (done: number, total: number) => void },
): Promise<TuningFit> {
  const { promise, resolve, reject } = Promise.withResolvers<TuningFit>();
  const worker = new Worker(FIT_WORKER_PATH, { type: 'module' });
  worker.onmessage = ({ data }: MessageEvent<FitMessage>) => {
    if (data.kind === 'progress') onProgress(data.done, data.total);
    else resolve(data.fit);
  };
  worker.onerror = ({ message }) => reject(new Error(message));
  signal.addEventListener('abort', () => reject(signal.reason));
  worker.postMessage(input);
  return promise.finally(() => worker.terminate());
}
