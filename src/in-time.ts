/** What `result` resolves to. Rejects as it does, or with an error of that message when `limit_ms` are over. */
export async function inTime<Result>(
  result: Promise<Result>,
  limit_ms: number,
  late_message: string,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(late_message)), limit_ms);
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
