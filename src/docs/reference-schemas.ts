import { escaped } from './layout.ts';
import { renderMarkdown } from './markdown.ts';
import type { DocumentedSchema } from './openapi-document.ts';

const ANY = 'any JSON value';

/** Returns a schema under its name, in HTML: its fields, or its alternatives. */
export function schemaSection(name: string, schema: DocumentedSchema): string {
  const description = schema.description === undefined ? '' : renderMarkdown(schema.description).html;
  const rows = fieldRows(schema);
  const body = rows.length === 0 ? `<p>${typeOf(schema)}</p>` : table(['Field', 'Type', 'Meaning'], rows);
  return `<h3 id="${anchorOf(name)}"><a href="#${anchorOf(name)}">${escaped(name)}</a></h3>\n${description}${body}`;
}

/** Returns the type of a value in words, with links to the schemas that it names. */
export function typeOf(schema: DocumentedSchema): string {
  const { $ref, type, items, properties, additionalProperties: values } = schema;
  if ($ref !== undefined) return linkTo($ref);
  if (schema.const !== undefined) return `<code>${escaped(JSON.stringify(schema.const))}</code>`;
  const members = schema.anyOf ?? schema.oneOf;
  if (members !== undefined) return members.map(typeOf).join(' or ');
  const kind =
    items !== undefined
      ? `list${ofValues('of', items)}`
      : values !== undefined
        ? `object${ofValues('with values of', values)}`
        : properties !== undefined
          ? 'object'
          : escaped(type ?? ANY);
  return `${kind}${boundsOf(schema)}`;
}

/** Returns the type of the values in a list or an object; empty for any type. */
function ofValues(words: string, values: DocumentedSchema): string {
  const type = typeOf(values);
  return type === ANY ? '' : ` ${words} ${type}`;
}

/** Returns one row for each field; the fields of objects follow with their path. */
function fieldRows(schema: DocumentedSchema, prefix = ''): readonly string[] {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const is_required = required.includes(name) ? ' <span class="required">required</span>' : '';
    const row = `<tr><th scope="row"><code>${escaped(path)}</code>${is_required}</th><td>${typeOf(field)}</td><td>${inline(field.description)}</td></tr>`;
    const within = [field, field.items, ...(field.anyOf ?? [])].filter((each) => each !== undefined);
    return [
      row,
      ...within.flatMap((each) => fieldRows(each, `${path}${each === field.items ? '[].' : '.'}`)),
    ];
  });
}

/** Returns a table in HTML; its rows are HTML already. */
export function table(columns: readonly string[], rows: readonly string[]): string {
  const head = columns.map((column) => `<th scope="col">${column}</th>`).join('');
  return `<div class="wide fields" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

/** Renders a sentence or two of Markdown within a line. */
export function inline(description: string | undefined): string {
  if (description === undefined) return '';
  return renderMarkdown(description)
    .html.trim()
    .replace(/^<p>(.*)<\/p>$/s, '$1');
}

function linkTo(reference: string): string {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return `<a href="#${anchorOf(name)}">${escaped(name)}</a>`;
}

function anchorOf(name: string): string {
  return `schema-${escaped(name)}`;
}

function boundsOf(schema: DocumentedSchema): string {
  const bounds = [
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' items'),
    range(schema.minProperties, schema.maxProperties, ' entries'),
  ].filter((each) => each !== null);
  return bounds.length === 0 ? '' : `, ${bounds.join(', ')}`;
}

function range(least: number | undefined, most: number | undefined, unit: string): string | null {
  if (most !== undefined) return `${least ?? 0} to ${most}${unit}`;
  return least === undefined ? null : `${least} or more${unit}`;
}
