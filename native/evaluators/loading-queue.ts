import { SerialQueue } from './serial-queue.ts';

const QUEUE = new SerialQueue(Number.POSITIVE_INFINITY);

/** A load that takes longer hangs, and no longer holds up others; the life of its model has given it up by then. */
const HANGS_AFTER_MS = 15 * 60_000;

/**
 * Loads when no other load of this process is under way, by the addon or through node-llama-cpp. ggml's registry and
 * llama.cpp's log have no lock. While the addon creates a context, its own device is registered, and any other new
 * context would get it.
 */
export function loadInTurn<Loaded>(
  load: () => Promise<Loaded>,
  hangs_after_ms = HANGS_AFTER_MS,
): Promise<Loaded> {
  const { promise, resolve } = Promise.withResolvers<Loaded>();
  void QUEUE.run(async () => {
    const loaded = load();
    resolve(loaded);
    const hangs = Promise.withResolvers<void>();
    const timer = setTimeout(hangs.resolve, hangs_after_ms);
    await Promise.race([loaded.catch(() => undefined), hangs.promise]);
    clearTimeout(timer);
  });
  return promise;
}
