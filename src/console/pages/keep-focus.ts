import { focusContent } from './focus-content.ts';

/** The parts of a page in which its reader goes on. */
const PARTS = 'section, figure, form, fieldset, ul, ol, [role=region], [role=tabpanel], dialog';

/**
 * Keeps the focus near its element where that is removed: on the part that it was in, or the heading of this. Browsers
 * would leave it to nothing, and the next Tab would begin at the top.
 */
export function keepFocus(): void {
  let focused: HTMLElement | null = null;
  const follow = (records: readonly MutationRecord[]) => {
    if (focused === null || document.activeElement !== document.body) return;
    let place: Node = focused;
    for (const { target, removedNodes } of records) {
      if ([...removedNodes].some((node) => node.contains(place))) place = target;
    }
    if (focused.isConnected) {
      // It was moved, or the reader has let go of it.
      if (place !== focused) focused.focus({ preventScroll: true });
      else focused = null;
    } else focusPart(place);
  };
  const removals = new MutationObserver(follow);
  removals.observe(document.body, { childList: true, subtree: true });
  document.addEventListener('focusin', ({ target }) => {
    focused = target instanceof HTMLElement ? target : null;
  });
  // Browsers may tell it before they remove the element.
  document.addEventListener('focusout', () => queueMicrotask(() => follow(removals.takeRecords())));
}

function focusPart(place: Node): void {
  const part = place instanceof Element ? place.closest<HTMLElement>(PARTS) : null;
  const target = part?.querySelector<HTMLElement>(':scope > header :is(h2, h3)') ?? part;
  if (target === null) {
    focusContent();
    return;
  }
  if (!target.hasAttribute('tabindex')) target.tabIndex = -1;
  target.focus({ preventScroll: true });
}
