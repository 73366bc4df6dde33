/** The types of settings' values. */
export type TomlKind = 'string' | 'integer' | 'boolean';

/** One `name = value`. */
export interface TomlEntry {
  readonly section: string;
  readonly name: string;
  readonly kind: TomlKind;
  /** The text of a string, the digits of an integer, `true` or `false`. */
  readonly text: string;
  readonly line: number;
}

/** The content of a file of settings; every section is named once, with the line of its heading. */
export interface TomlFile {
  readonly sections: ReadonlyMap<string, number>;
  readonly entries: readonly TomlEntry[];
}

/** The error of an unreadable line. The sentence never quotes it, because it may contain a secret. */
export class TomlError extends Error {
  override readonly name = 'TomlError';
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}

// Built from pieces, because every one of them ends with white space and a comment.
// biome-ignore lint/suspicious/noControlCharactersInRegex: TOML forbids them in comments and strings
const END = /[ \t]*(?:#[^\x00-\x08\x0a-\x1f\x7f]*)?$/.source;
const EMPTY = new RegExp(`^${END}`);
const HEADING = new RegExp(`^[ \\t]*\\[[ \\t]*([A-Za-z0-9_-]+)[ \\t]*\\]${END}`);
const PAIR = /^[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(.*)$/;
const BASIC = new RegExp(`^"((?:[^"\\\\\\x00-\\x08\\x0a-\\x1f\\x7f]|\\\\.)*)"${END}`);
const LITERAL = new RegExp(`^'([^'\\x00-\\x08\\x0a-\\x1f\\x7f]*)'${END}`);
const INTEGER = new RegExp(`^([+-]?(?:0|[1-9](?:_?[0-9])*))${END}`);
const BOOLEAN = new RegExp(`^(true|false)${END}`);

/**
 * Parses the part of TOML that settings need: `[section]`, and `name = value` with a string on one line, an
 * integer or a boolean. Each result has its line. Other TOML is refused, so that an accepted file means the
 * same to every TOML parser. Throws `TomlError`.
 */
export function parseToml(text: string): TomlFile {
  const sections = new Map<string, number>();
  const entries = new Map<string, TomlEntry>();
  let section: string | undefined;
  text.split(/\r?\n/).forEach((content, index) => {
    const line = index + 1;
    if (EMPTY.test(content)) return;
    const heading = HEADING.exec(content)?.[1];
    if (heading !== undefined) {
      const before = sections.get(heading);
      if (before !== undefined)
        throw new TomlError(line, `the section [${heading}] is in line ${before} already`);
      sections.set(heading, line);
      section = heading;
      return;
    }
    const [, name, written] = PAIR.exec(content) ?? [];
    if (name === undefined || written === undefined)
      throw new TomlError(line, 'this is neither a [section] nor a name = value');
    if (section === undefined)
      throw new TomlError(line, `${name} must be below the heading of its [section]`);
    const before = entries.get(`${section}.${name}`);
    if (before !== undefined) throw new TomlError(line, `${name} is in line ${before.line} already`);
    entries.set(`${section}.${name}`, { section, name, line, ...tomlValue(written, line) });
  });
  return { sections, entries: [...entries.values()] };
}

function tomlValue(written: string, line: number): Pick<TomlEntry, 'kind' | 'text'> {
  const basic = BASIC.exec(written)?.[1];
  if (basic !== undefined) return { kind: 'string', text: unescaped(basic, line) };
  const literal = LITERAL.exec(written)?.[1];
  if (literal !== undefined) return { kind: 'string', text: literal };
  const integer = INTEGER.exec(written)?.[1];
  if (integer !== undefined) return { kind: 'integer', text: integer.replaceAll(/[+_]/g, '') };
  const boolean = BOOLEAN.exec(written)?.[1];
  if (boolean !== undefined) return { kind: 'boolean', text: boolean };
  throw new TomlError(line, 'a value must be a text in quotes on one line, a whole number, true or false');
}

const ESCAPED: ReadonlyMap<string, string> = new Map([
  ['b', '\b'],
  ['t', '\t'],
  ['n', '\n'],
  ['f', '\f'],
  ['r', '\r'],
  ['"', '"'],
  ['\\', '\\'],
]);

function unescaped(basic: string, line: number): string {
  return basic.replaceAll(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/gu, (_, four, eight, one) => {
    const character = one === undefined ? scalar(four ?? eight) : ESCAPED.get(one);
    if (character === undefined)
      throw new TomlError(line, "a text holds a \\ that TOML does not know: write it as \\\\ or use '…'");
    return character;
  });
}

/**
 * Returns the character with that hexadecimal number; undefined for half of a surrogate pair, and beyond
 * Unicode.
 */
function scalar(hexadecimal: string): string | undefined {
  const point = Number.parseInt(hexadecimal, 16);
  return point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? undefined : String.fromCodePoint(point);
}
