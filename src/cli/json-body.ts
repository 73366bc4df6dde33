/** Returns the body of a response; null if it is not JSON. Rejects as the connection does. */
export async function jsonOrNull(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
