const waiting = new Set<() => void>();

/**
 * Goes to another document. The browser may take seconds to load it, and the caller stays busy meanwhile.
 * Resolves only when the browser shows this page again as it was.
 */
export function leaveFor(url: string): Promise<void> {
  location.assign(url);
  return new Promise((resolve) => waiting.add(resolve));
}

/** Resumes the page that the browser shows again. */
export function stay(): void {
  for (const resolve of waiting) resolve();
  waiting.clear();
}
