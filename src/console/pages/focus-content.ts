/** Moves the focus to the content of the page, from something that is gone, or goes. Scrolls nothing. */
export function focusContent(): void {
  document.getElementById('content')?.focus({ preventScroll: true });
}
