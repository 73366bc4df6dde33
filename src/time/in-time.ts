/** The error of an answer that came too late. Its message is a fixed sentence of the caller. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

/** Resolves and rejects as `result` does, or rejects with `TookTooLong` and that message after `limit_ms`. */
export async function inTime<Result>(
  result: Promise<Result>,
  limit_ms: number,
  late_message: string,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new TookTooLong(late_message)), limit_ms);
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
