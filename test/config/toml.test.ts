import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { parseToml, TomlError, type TomlFile } from '../../src/config/toml.ts';
import { propertySeed } from '../ledger/support.ts';

function read(text: string): TomlFile | null {
  try {
    return parseToml(text);
  } catch (error) {
    if (error instanceof TomlError) return null;
    throw error;
  }
}

/** Returns the document that another TOML reader would make of these entries. */
function asDocument({ sections, entries }: TomlFile): unknown {
  return Object.fromEntries(
    [...sections.keys()].map((section) => [
      section,
      Object.fromEntries(
        entries
          .filter((entry) => entry.section === section)
          .map(({ name, kind, text }) => [
            name,
            kind === 'string' ? text : kind === 'integer' ? Number(text) || 0 : text === 'true',
          ]),
      ),
    ]),
  );
}

describe('a file of settings', () => {
  test('whatever is taken means the same to a whole reader of TOML', () => {
    const space = fc.constantFrom('', ' ', '\t', '  ');
    const comment = fc.constantFrom('', '# c', '#"', "# '[x]", '# a = 1');
    const value = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }).map((text) => JSON.stringify(text)),
      fc.string({ unit: fc.constantFrom(...'ab\\"\'#=[]nu0041U \t'), maxLength: 14 }),
      fc.string({ unit: fc.constantFrom(...'ab\\#"nu0041U\t ='), maxLength: 12 }).map((text) => `"${text}"`),
      fc.string({ unit: fc.constantFrom(...'ab\\#"= '), maxLength: 12 }).map((text) => `'${text}'`),
      fc.string({ unit: fc.constantFrom(...'0123_+-.exo'), maxLength: 8 }),
      fc.constantFrom('true', 'false', '"""a"""', "'''a'''", '""', "''", '[1]', '{}', '1979-05-27'),
    );
    const name = fc.constantFrom('a', 'b', 'c-d', '1', '"q"', 'a.b', 'é', '');
    const line = fc.oneof(
      {
        weight: 5,
        arbitrary: fc
          .tuple(space, name, space, value, space, comment)
          .map(([a, n, b, v, c, d]) => `${a}${n}${b}=${b}${v}${c}${d}`),
      },
      {
        weight: 2,
        arbitrary: fc.tuple(space, name, space, comment).map(([a, n, b, c]) => `${a}[${b}${n}${b}]${b}${c}`),
      },
      { weight: 1, arbitrary: fc.tuple(space, comment).map(([a, c]) => a + c) },
    );
    let taken = 0;
    const lines = fc.array(line, { maxLength: 4 });
    fc.assert(
      fc.property(lines, fc.constantFrom('\n', '\r\n'), (all, end) => {
        const text = ['[s]', ...all].join(end);
        const file = read(text);
        if (file === null) return;
        taken += 1;
        expect<unknown>(Bun.TOML.parse(text)).toEqual(asDocument(file));
      }),
      { seed: propertySeed('toml'), numRuns: 4_000 },
    );
    expect(taken).toBeGreaterThan(200);
  });

  test('each entry has its line, whatever is around it', () => {
    const { entries, sections } = parseToml(
      '# a = 1\n\n[one] # [two]\nx = "[two]"\r\n\n  [two]\n\ty=1_000 # y = 2\nz = \'\\n\'',
    );
    expect([...sections]).toEqual([
      ['one', 3],
      ['two', 6],
    ]);
    expect(entries).toEqual([
      { section: 'one', name: 'x', kind: 'string', text: '[two]', line: 4 },
      { section: 'two', name: 'y', kind: 'integer', text: '1000', line: 7 },
      { section: 'two', name: 'z', kind: 'string', text: '\\n', line: 8 },
    ]);
  });

  test.each([
    ['a value without quotes', '[a]\nb = hunter2'],
    ['a text that does not end', '[a]\nb = "hunter2'],
    ['an unknown escape', '[a]\nb = "hunter2\\q"'],
    ['half of a surrogate pair', '[a]\nb = "hunter2\\ud800"'],
    ['a text on several lines', '[a]\nb = """hunter2'],
    ['a list', '[a]\nb = ["hunter2"]'],
    ['no value', '[a]\nb ='],
    ['no name', '[a]\nhunter2'],
    ['a name a second time', '[a]\nb = 1\nb = "hunter2"'],
    ['a section a second time', '[a]\n[a]\nb = "hunter2"'],
    ['a name before any section', '\nb = "hunter2"'],
    ['a dotted name', '[a]\nb.c = "hunter2"'],
  ])('%s is refused with the line, without quoting it', (_, text) => {
    const error = (() => {
      try {
        return parseToml(text);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(TomlError);
    if (!(error instanceof TomlError)) return;
    expect(error.line).toBe(text.includes('b = 1') ? 3 : 2);
    expect(error.message).not.toContain('hunter2');
  });
});
