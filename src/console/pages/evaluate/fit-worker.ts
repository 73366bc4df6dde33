import { type FitInput, fitTuning, type TuningFit } from './fit-tuning.ts';

/** A worker's news of a fit. */
export type FitMessage =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'done'; readonly fit: TuningFit };

const tell = (message: FitMessage) => postMessage(message);

addEventListener('message', async ({ data }: MessageEvent<FitInput>) => {
  const fit = await fitTuning(data, (done, total) => tell({ kind: 'progress', done, total }));
  tell({ kind: 'done', fit });
});
