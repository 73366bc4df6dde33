/**
 * Moves the focus to the content of the page, from an element that is gone or about to go. Does not scroll.
 */
export function focusContent(): void {
  document.getElementById('content')?.focus({ preventScroll: true });
}
