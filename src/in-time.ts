/** No answer came in time. Its message is a fixed sentence of whoever waited. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

/** What `result` resolves to. Rejects as it does, or with `TookTooLong` of that message when `limit_ms` are over. */
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
