/** Returns the address of a page of an organization: `organizationPath(id, 'usage')`. */
export function organizationPath(organization_id: string, page: string): string {
  return `/console/o/${organization_id}/${page}`;
}

/** Returns the address of one request's own view. */
export function requestPath(organization_id: string, request_id: string): string {
  return `${organizationPath(organization_id, 'usage')}?request=${encodeURIComponent(request_id)}`;
}

/**
 * Returns the named parts of a path that matches a pattern such as `/console/o/:organization_id/usage`; null
 * if it does not.
 */
export function matchPath(pattern: string, actual: string): Readonly<Record<string, string>> | null {
  const expected = pattern.split('/');
  const parts = actual.split('/');
  if (expected.length !== parts.length) return null;
  const found: Record<string, string> = {};
  for (const [index, name] of expected.entries()) {
    const part = parts[index] ?? '';
    if (name.startsWith(':')) found[name.slice(1)] = part;
    else if (name !== part) return null;
  }
  return found;
}

/**
 * Returns a path to return to after sign-in: one of the console's own pages, or else its first. Never another
 * site's.
 */
export function safeReturnPath(wanted: string | null, origin: string): string {
  if (wanted === null || !URL.canParse(wanted, origin)) return '/console';
  // A host in the path is dropped here.
  const { pathname, search } = new URL(wanted, origin);
  return /^\/console(?:\/|$)/.test(pathname) ? pathname + search : '/console';
}
