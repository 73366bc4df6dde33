import { InvalidArgumentError } from 'commander';

/** Where the specification of OTLP over HTTP has traces below a collector's address. */
const TRACES_PATH = '/v1/traces';

/**
 * The whole address that traces are posted to, of a collector's base address, or of one that names it all. Throws
 * `InvalidArgumentError`.
 */
export function parseOtlpEndpoint(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('It must be an address that begins with http:// or https://.');
  }
  // A secret in there would be printed with the settings.
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('It must hold no password: give it as a header by TDS_OTLP_HEADERS.');
  }
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith(TRACES_PATH) ? path : path + TRACES_PATH;
  return url.href;
}

const HEADER = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/;

/**
 * Headers as OpenTelemetry writes them: `name=value`, with commas between, and with `%20` and the like in a value.
 * Throws `InvalidArgumentError`, which quotes nothing of it.
 */
export function parseOtlpHeaders(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [, name, written] = HEADER.exec(pair) ?? [];
      const value = written === undefined ? undefined : decoded(written);
      // What a header cannot hold would fail with every post.
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
