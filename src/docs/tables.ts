import { dollarsOf } from '../contract/money.ts';
import { TIERS } from '../contract/tiers.ts';
import { COMMON_CODES, ERROR_CODES, ERRORS, type ErrorCode } from '../errors/errors.ts';

/** The sources of the tables besides the catalogue of errors and the tiers. */
export interface TableSources {
  /** Every code of a documented route. */
  readonly codes: readonly ErrorCode[];
}

/** The tables that a document names by `{{NAME}}`, as Markdown. */
export const TABLES = { errors: errorTable, tiers: tierTable } satisfies Record<
  string,
  (sources: TableSources) => string
>;

/** Returns the text with every `{{NAME}}` replaced by its table. Throws where there is no such table. */
export function withTables(markdown: string, sources: TableSources): string {
  return markdown.replaceAll(/^\{\{(\w+)\}\}$/gm, (_, name: string) => {
    const table = Object.entries(TABLES).find(([known]) => known === name)?.[1];
    if (table === undefined) throw new Error(`the documents have no table of ${name}`);
    return table(sources);
  });
}

function errorTable({ codes }: TableSources): string {
  const listed = new Set<ErrorCode>([...codes, ...COMMON_CODES, 'not_found', 'method_not_allowed']);
  const rows = ERROR_CODES.filter((code) => listed.has(code)).map((code) => {
    const row = ERRORS[code];
    const status = 'other_status' in row ? `${row.other_status} or ${row.status}` : row.status;
    return `| ${status} | <span id="${code}">\`${code}\`</span> | ${row.message} | ${row.retry === 'later' ? 'yes' : 'no'} |`;
  });
  return ['| Status | Code | Message | Retry |', '|---|---|---|---|', ...rows].join('\n');
}

function tierTable(): string {
  const rows = TIERS.map(({ tier, paid_micros, days, limits, top_up_max_micros }) => {
    const reached_by =
      tier === 0 ? 'sign-up' : `${dollars(paid_micros)}${days === 0 ? '' : `, ${days} days`}`;
    const allowed =
      limits === null
        ? ['none', 'none', 'none']
        : [limits.requests_per_minute, limits.tokens_per_minute, limits.questions_per_request].map((limit) =>
            limit.toLocaleString('en-US'),
          );
    return `| ${[tier, reached_by, ...allowed, dollars(top_up_max_micros)].join(' | ')} |`;
  });
  const head =
    '| Tier | Paid, and days since the first payment | Requests a minute | Tokens a minute | Questions a request | Largest top-up |\n|---|---|--:|--:|--:|--:|';
  return [head, ...rows].join('\n');
}

function dollars(micros: number): string {
  return `$${dollarsOf(micros).toLocaleString('en-US')}`;
}
