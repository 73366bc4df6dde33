/** Where a text is stored: for all tabs of this browser, or for this tab. */
type Place = 'localStorage' | 'sessionStorage';

/** Returns a stored text; null for none, and in a browser that stores nothing. */
export function stored(name: string, place: Place = 'localStorage'): string | null {
  try {
    return window[place].getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text, or removes it for null. A browser that stores nothing is as one at its first visit the next time. */
export function store(name: string, text: string | null, place: Place = 'localStorage'): void {
  try {
    if (text === null) window[place].removeItem(name);
    else window[place].setItem(name, text);
  } catch {
    // The page goes on without.
  }
}
