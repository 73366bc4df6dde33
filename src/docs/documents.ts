import { projectFile } from '../files/project-root.ts';
import { htmlPage, type NavigationLink } from './layout.ts';
import { renderMarkdown } from './markdown.ts';
import { type TableSources, withTables } from './tables.ts';

/**
 * Every document, in the order of the navigation: the names of the files in `pages/`. The first is at `/docs`
 * itself.
 */
export const DOCUMENTS = [
  'quickstart',
  'question-types',
  'modes',
  'probabilities',
  'confidence',
  'errors',
  'limits',
  'batches',
  'billing',
  'sdks',
  'agents',
  'tuning',
  'self-hosting',
] as const;

export type DocumentName = (typeof DOCUMENTS)[number];

/** The address in the documents' sources; readers see that of their own service instead. */
export const EXAMPLE_ADDRESS = 'http://127.0.0.1:8080';

/** The differences between the documents of services. */
export interface DocumentSources extends TableSources {
  /** The address of the service, without a trailing slash. */
  readonly url: string;
  readonly bar: readonly NavigationLink[];
}

/** Returns the path of a document. */
export function documentPath(name: DocumentName): string {
  return name === DOCUMENTS[0] ? '/docs' : `/docs/${name}`;
}

/** Reads a document's source. Rejects where it does not begin with a title and a paragraph. */
export async function readDocument(name: DocumentName) {
  const markdown = await Bun.file(projectFile(`src/docs/pages/${name}.md`)).text();
  const [, title, description] = /^# (.+)\n\n([^#`|{][\s\S]*?)\n\n/.exec(markdown) ?? [];
  if (title === undefined || description === undefined) {
    throw new Error(`${name}.md does not begin with a title and a paragraph`);
  }
  return { name, markdown, title, description: description.replaceAll('\n', ' ') };
}

/** Returns a document as a page. Rejects where a file cannot be read, or `readDocument` rejects. */
export async function documentPage(name: DocumentName, sources: DocumentSources): Promise<string> {
  const { title, description, markdown } = await readDocument(name);
  const { url, bar } = sources;
  const text = withTables(markdown, sources).replaceAll(EXAMPLE_ADDRESS, url);
  const { html, headings } = renderMarkdown(text);
  const navigation = await Promise.all(
    DOCUMENTS.map(async (other) => ({
      label: (await readDocument(other)).title,
      href: documentPath(other),
      is_current: other === name,
      parts: other === name ? headings.map(({ id, text: label }) => ({ label, href: `#${id}` })) : [],
    })),
  );
  return htmlPage({ title, description, navigation, bar, content: html });
}
