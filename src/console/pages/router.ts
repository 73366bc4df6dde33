import { computed, signal } from '@preact/signals';

const address = signal(new URL(location.href));

/** The shown path, without a trailing slash. */
export const path = computed(() => address.value.pathname.replace(/\/+$/, ''));
/** The query of the shown address: its filters. */
export const query = computed(() => address.value.searchParams);
/** The fields of its fragment: tokens of links, which are in no request and no referrer. */
export const fragment = computed(() => new URLSearchParams(address.value.hash.slice(1)));

const holds = new Set<() => boolean>();

/** Keeps the shown page on the browser's ways back and forward while `isHeld` returns true. Returns what ends that. */
export function holdPage(isHeld: () => boolean): () => void {
  holds.add(isHeld);
  return () => {
    holds.delete(isHeld);
  };
}

/** Shows another page of the console without loading the document again. */
export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const target = new URL(to, location.href);
  if (replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  const is_other_page = target.pathname !== address.value.pathname;
  address.value = target;
  if (is_other_page) scrollTo(0, 0);
}

/**
 * Changes fields of the query, so that a filtered page has an address of its own; null removes a field.
 * `replace: false` keeps the earlier view in the browser's history.
 */
export function setQuery(
  fields: Readonly<Record<string, string | null>>,
  { replace = true }: { replace?: boolean } = {},
): void {
  const target = new URL(address.value);
  for (const [name, value] of Object.entries(fields)) {
    if (value === null) target.searchParams.delete(name);
    else target.searchParams.set(name, value);
  }
  navigate(target.href, { replace });
}

/** Returns how many pages of its list this place of the browser's history has shown; a new place has shown one. */
export function shownPages(): number {
  const state: unknown = history.state;
  return typeof state === 'number' ? state : 1;
}

/** Notes it, for whoever comes back. */
export function noteShownPages(count: number): void {
  history.replaceState(count, '');
}

/** Removes the fragment from the address, and from the browser's history. */
export function dropFragment(): void {
  const target = new URL(address.value);
  target.hash = '';
  navigate(target.href, { replace: true });
}

/** Handles the browser's back and forward, and every plain `<a href>` to a page of the console. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    // The browser has gone already. The same address after the earlier one is the way back again.
    if ([...holds].some((isHeld) => isHeld())) history.pushState(null, '', address.value);
    else address.value = new URL(location.href);
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.hasAttribute('download')) return;
    const target = new URL(link.href, location.href);
    const is_page = target.pathname === '/console' || target.pathname.startsWith('/console/');
    if (target.origin !== location.origin || !is_page || target.pathname.startsWith('/console/api/')) return;
    // The browser handles a jump within the page.
    if (target.hash !== '' && target.pathname === location.pathname) return;
    event.preventDefault();
    navigate(target.href);
  });
}
