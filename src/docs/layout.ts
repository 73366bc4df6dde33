/** A link of a page's navigation; those of `parts` are below it. */
export interface NavigationLink {
  readonly label: string;
  readonly href: string;
  readonly is_current?: boolean;
  readonly parts?: readonly NavigationLink[];
}

/** The parts of a page. Texts are escaped by `htmlPage`; `content` is HTML. */
export interface PageParts {
  readonly title: string;
  readonly description: string;
  readonly navigation: readonly NavigationLink[];
  /** Links in the bar at the top, beside the one to the documents. */
  readonly bar: readonly NavigationLink[];
  readonly content: string;
}

/** The paths of the files that all pages load. */
export const STYLE_PATH = '/docs/style.css';
export const SCRIPT_PATH = '/docs/page.js';

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2b57d9"/><path d="M8 10h16M8 16h11M8 22h6" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

/**
 * Returns a page as HTML: without inline styles or scripts, and with every link below the service's own
 * address.
 */
export function htmlPage({ title, description, navigation, bar, content }: PageParts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Typed Decision Service</title>
<meta name="description" content="${escaped(description)}">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<link rel="stylesheet" href="${STYLE_PATH}">
<script src="${SCRIPT_PATH}"></script>
</head>
<body>
<a class="skip-link" href="#content">Skip to the content</a>
<header class="top-bar">
<button type="button" class="menu-button" popovertarget="pages">Menu</button>
<a class="brand" href="/docs">${ICON.replace('<svg ', '<svg aria-hidden="true" ')}<span>Decisions</span></a>
<nav aria-label="Service">${links(bar)}</nav>
</header>
<nav id="pages" class="side" popover aria-label="Pages">${links(navigation)}</nav>
<main id="content" tabindex="-1">
${content}
</main>
</body>
</html>
`;
}

/** Returns text escaped for HTML, also between quotes. */
export function escaped(text: string): string {
  return Bun.escapeHTML(text);
}

function links(listed: readonly NavigationLink[]): string {
  const items = listed.map(
    ({ label, href, is_current = false, parts = [] }) =>
      `<li><a href="${escaped(href)}"${is_current ? ' aria-current="page"' : ''}>${escaped(label)}</a>${
        parts.length === 0 ? '' : links(parts)
      }</li>`,
  );
  return `<ul>${items.join('')}</ul>`;
}
