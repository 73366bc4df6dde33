/**
 * Returns a response whose text is produced while the client takes it, piece by piece. `onCancel` runs when the client
 * is gone.
 */
export function streamedText(
  pieces: AsyncGenerator<string, void, undefined>,
  onCancel: () => Promise<unknown>,
  headers: Readonly<Record<string, string>>,
): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await onCancel();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      ...headers,
      // Elysia reads a body of `chunked` by itself, and ends one that fails as if it were complete. Names of codings are
      // case-insensitive (RFC 9112, 7), and this one leaves the failure to the port, which reports it and breaks the
      // connection.
      'transfer-encoding': 'Chunked',
      'cache-control': 'no-store',
    },
  });
}
