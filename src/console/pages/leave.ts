const waiting = new Set<() => void>();

/**
 * Leaves for another document. The browser may take seconds until that is there: whoever waits stays busy. Resolves only
 * when the browser shows this page again as it was left.
 */
export function leaveFor(url: string): Promise<void> {
  location.assign(url);
  return new Promise((resolve) => waiting.add(resolve));
}

/** Lets the page go on that the browser shows again. */
export function stay(): void {
  for (const resolve of waiting) resolve();
  waiting.clear();
}
