import { retryOf } from '../../errors/errors.ts';

/** Returns true if the lines that a batch left when it ended with that code can be sent again as they are. */
export function canGoOn(code: string): boolean {
  // A program's lines are JSON: the body broke off on its way.
  return retryOf(code) === 'later' || code === 'invalid_json';
}

/** Stands between the reason of a batch's end and where to go on: the protocol has no other mark of its last line. */
const END = ' The batch ends here: ';

/** Returns the message of the last line of a batch that ends before its request does. */
export function endMessage(why: string, next_line: number): string {
  return `${why}${END}send the lines from line ${next_line} on again, and earlier ones whose error can be retried.`;
}

/** Returns the reason in the message of a last line, without where to go on; null for every other message. */
export function whyEnded(message: string): string | null {
  const at = message.indexOf(END);
  return at === -1 ? null : message.slice(0, at);
}
