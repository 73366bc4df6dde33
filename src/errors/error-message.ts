/** Returns the message of an error, or the text of any other value that was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The most characters of a quoted text. */
const EXCERPT_CHARACTERS = 200;

/**
 * Returns the beginning of a text from outside, for a message: at most 200 characters on one line. The names
 * in a file may have megabytes, or characters that a terminal interprets.
 */
export function excerpt(text: string): string {
  const beginning = text.slice(0, EXCERPT_CHARACTERS).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
  return text.length > EXCERPT_CHARACTERS ? `${beginning}…` : beginning;
}
