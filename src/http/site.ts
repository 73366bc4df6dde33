/** The browser parts of the service, and their address. */
export interface Site {
  /** The address of the service, such as `https://tds.example.com`; null where it is not known. */
  readonly public_url: string | null;
  /** Returns the address at which the service listens, once it does. */
  readonly own_url: () => string;
  readonly has_reference: boolean;
  readonly has_console: boolean;
}

/** Returns the links from each page to the others. */
export function siteLinks({ has_reference, has_console }: Site, current_path: string) {
  const pages = [
    { label: 'Docs', href: '/docs', is_there: true },
    { label: 'API reference', href: '/swagger', is_there: has_reference },
    { label: 'Console', href: '/console', is_there: has_console },
  ];
  return pages
    .filter(({ is_there }) => is_there)
    .map(({ label, href }) => ({ label, href, is_current: href === current_path }));
}
