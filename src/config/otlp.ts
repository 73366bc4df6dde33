import { InvalidArgumentError } from 'commander';

/** The path of traces below a collector's address (OTLP over HTTP). */
const TRACES_PATH = '/v1/traces';

/**
 * Returns the full address to which traces are posted, from a collector's base address or from the full one.
 * Throws `InvalidArgumentError`.
 */
export function parseOtlpEndpoint(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('It must be an address that begins with http:// or https://.');
  }
  // A password in the address would be printed with the settings.
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('It must hold no password: give it as a header by TDS_OTLP_HEADERS.');
  }
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith(TRACES_PATH) ? path : path + TRACES_PATH;
  return url.href;
}

const HEADER = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/;

/**
 * Parses headers in OpenTelemetry's format: `name=value`, separated by commas, with `%20` and the like in a
 * value. Throws `InvalidArgumentError`, which quotes nothing of the text.
 */
export function parseOtlpHeaders(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [, name, written] = HEADER.exec(pair) ?? [];
      const value = written === undefined ? undefined : decoded(written);
      // A value that a header cannot hold would fail with every post.
      if (name === undefined || value === undefined || !/^[\x20-\x7e]+$/.test(value)) {
        throw new InvalidArgumentError('It must be name=value, with commas between several.');
      }
      return [name.toLowerCase(), value];
    }),
  );
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
