import { escaped, htmlPage, type NavigationLink } from './layout.ts';
import { renderMarkdown } from './markdown.ts';
import type { DocumentedContent, DocumentedOperation, OpenApiDocument } from './openapi-document.ts';
import { inline, schemaSection, table, typeOf } from './reference-schemas.ts';

/** An operation with its method and path. */
interface Listed extends DocumentedOperation {
  readonly method: string;
  readonly path: string;
}

/** A part of the page with a heading of its own, in HTML. */
interface Section {
  readonly title: string;
  readonly content: string;
  readonly operations?: readonly Listed[];
}

/**
 * Returns the API reference as a page: the operations first, then the schemas, and last the tags that have a
 * text in place of operations.
 */
export function referencePage(document: OpenApiDocument, bar: readonly NavigationLink[]): string {
  const { info } = document;
  const sections = sectionsOf(document);
  const content = [
    '<h1>API reference</h1>',
    renderMarkdown(info.description).html,
    `<p>Version ${escaped(info.version)} · <a href="/openapi.json">OpenAPI document</a></p>`,
    ...sections.map(
      (section) => `${heading(2, anchorOf(section.title), escaped(section.title))}\n${section.content}`,
    ),
  ];
  const navigation = sections.map(({ title, operations = [] }) => ({
    label: title,
    href: `#${anchorOf(title)}`,
    parts: operations.map((each) => ({ label: nameOf(each), href: `#${anchorOf(nameOf(each))}` })),
  }));
  const title = 'API reference';
  return htmlPage({ title, description: info.description, navigation, bar, content: content.join('\n') });
}

function sectionsOf({ tags, paths, components }: OpenApiDocument): readonly Section[] {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Listed => ({ ...operation, method, path })),
  );
  const tagged = tags.map(({ name, description = '' }): Section => {
    const of_tag = operations.filter((operation) => operation.tags.includes(name));
    const content = [renderMarkdown(description).html, ...of_tag.map(operationSection)].join('\n');
    return { title: name, content, operations: of_tag };
  });
  const schemas = Object.entries(components.schemas).map(([name, schema]) => schemaSection(name, schema));
  const schemes = Object.values(components.securitySchemes).map(({ description }) => description);
  return [
    { title: 'Authentication', content: renderMarkdown(schemes.join('\n\n')).html },
    ...tagged.filter(({ operations: of_tag = [] }) => of_tag.length > 0),
    { title: 'Schemas', content: schemas.join('\n') },
    ...tagged.filter(({ operations: of_tag = [] }) => of_tag.length === 0),
  ];
}

function operationSection(operation: Listed): string {
  const { method, path, summary, description = '', requestBody: body, responses } = operation;
  const success = responses[200];
  return [
    heading(
      3,
      anchorOf(nameOf(operation)),
      `<span class="method">${method.toUpperCase()}</span> <code>${escaped(path)}</code>`,
    ),
    renderMarkdown(`${summary}.\n\n${description}`).html,
    parametersOf(operation),
    body === undefined ? '' : bodyOf('Request', body.description ?? '', body.content),
    success === undefined ? '' : bodyOf('Response', success.description, success.content),
    errorsOf(operation),
    headersOf(operation),
  ].join('\n');
}

function parametersOf({ parameters = [] }: Listed): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(
    ({ name, in: place, schema, description }) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${escaped(place)}</td><td>${typeOf(schema)}</td><td>${inline(description)}</td></tr>`,
  );
  return `<h4>Parameters</h4>\n${table(['Name', 'In', 'Type', 'Meaning'], rows)}`;
}

/** Returns a body: its description, and its examples, of which the first one is visible at once. */
function bodyOf(title: string, description: string, contents: DocumentedContent): string {
  return Object.values(contents)
    .map((content) => contentOf(title, description, content))
    .join('\n');
}

function contentOf(title: string, description: string, content: DocumentedContent[string]): string {
  const examples = Object.values(content.examples).map(
    ({ summary, value }, index) =>
      `<details${index === 0 ? ' open' : ''}><summary>Example: ${escaped(summary)}</summary><pre tabindex="0"><code>${escaped(JSON.stringify(value, null, 2))}</code></pre></details>`,
  );
  return `<h4>${title}</h4>\n<p>${typeOf(content.schema)}. ${inline(description)}</p>\n${examples.join('\n')}`;
}

function errorsOf({ responses }: Listed): string {
  const rows = Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .map(
      ([status, { description }]) =>
        `<tr><th scope="row">${escaped(status)}</th><td>${renderMarkdown(description).html}</td></tr>`,
    );
  return `<h4>Errors</h4>\n${table(['Status', 'Codes'], rows)}`;
}

/** Returns each header once, with the statuses that have it. */
function headersOf({ responses }: Listed): string {
  const statuses = new Map<string, { readonly description: string; readonly with: string[] }>();
  for (const [status, { headers }] of Object.entries(responses)) {
    for (const [name, { description }] of Object.entries(headers)) {
      const known = statuses.get(name) ?? { description, with: [] };
      known.with.push(status);
      statuses.set(name, known);
    }
  }
  const all = Object.keys(responses).length;
  const rows = [...statuses].map(
    ([name, { description, with: given }]) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${given.length === all ? 'all' : given.join(', ')}</td><td>${inline(description)}</td></tr>`,
  );
  return `<h4>Response headers</h4>\n${table(['Header', 'With', 'Meaning'], rows)}`;
}

function nameOf({ method, path }: Listed): string {
  return `${method.toUpperCase()} ${path}`;
}

function anchorOf(name: string): string {
  return name.toLowerCase().replaceAll(/\W+/g, '-');
}

/** Returns a heading with a link to itself; `content` is HTML. */
function heading(level: 2 | 3, anchor: string, content: string): string {
  return `<h${level} id="${anchor}"><a href="#${anchor}">${content}</a></h${level}>`;
}
