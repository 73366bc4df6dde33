/** A heading that can be linked to. */
export interface Heading {
  readonly id: string;
  readonly text: string;
}

/** Markdown rendered as HTML, with its second-level headings. */
export interface RenderedMarkdown {
  readonly html: string;
  readonly headings: readonly Heading[];
}

/**
 * Tables and code can be wider than the screen. They scroll on their own, and must be focusable for the
 * keyboard.
 */
const WIDE = new HTMLRewriter()
  .on('table', {
    element(table) {
      table.before('<div class="wide" tabindex="0">', { html: true });
      table.after('</div>', { html: true });
    },
  })
  .on('pre', {
    element(code) {
      code.setAttribute('tabindex', '0');
    },
  });

/** Renders our own text, in which HTML is kept. Every heading has an anchor, and links to itself. */
export function renderMarkdown(markdown: string): RenderedMarkdown {
  const headings: Heading[] = [];
  const heading = (text: string, { level, id }: { level: number; id?: string }) => {
    if (level === 2 && id !== undefined) headings.push({ id, text });
    return '';
  };
  Bun.markdown.render(markdown, { heading }, { headings: { ids: true } });
  return { html: WIDE.transform(Bun.markdown.html(markdown, { headings: true })), headings };
}
