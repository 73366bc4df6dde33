import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { readConfigFile, whyUntrusted } from '../../src/config/config-file.ts';
import { ConfigurationRefused } from '../../src/config/configuration-refused.ts';
import { effectiveSettings, unknownVariables } from '../../src/config/effective.ts';
import { propertySeed } from '../ledger/support.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let root: ReturnType<typeof temporaryDirectory>;
let path: string;
beforeAll(() => {
  root = temporaryDirectory();
  path = join(root.path, 'tds.toml');
});
afterAll(() => root.remove());

function fileOf(text: string | Uint8Array, mode = 0o600): string {
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

/** The sentence with which the file is refused. */
function refusal(file: string | undefined): string {
  try {
    readConfigFile(file);
  } catch (error) {
    if (error instanceof ConfigurationRefused) return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}

test('a flag wins over the variable, that over the file, and that over the default; each says where it is from', () => {
  const port = fc.option(fc.integer({ min: 0, max: 65_535 }), { nil: undefined });
  fc.assert(
    fc.property(port, port, port, (flag, variable, line) => {
      const file = readConfigFile(fileOf(line === undefined ? '' : `\n[server]\nport = ${line}\n`));
      const [port] = effectiveSettings(['port'], {
        flags: new Map(flag === undefined ? [] : [['port', String(flag)]]),
        environment: { TDS_PORT: variable === undefined ? '' : String(variable) },
        file,
      });
      expect(port?.value).toBe(flag ?? variable ?? line ?? 8080);
      const origins = [
        ...(flag === undefined ? [] : [{ from: 'flag' as const, flag: '--port' }]),
        ...(variable === undefined ? [] : [{ from: 'environment' as const, variable: 'TDS_PORT' }]),
        ...(line === undefined ? [] : [{ from: 'file' as const, path, line: 3 }]),
        { from: 'default' as const },
      ];
      expect(port?.origin).toEqual(origins[0] ?? { from: 'default' });
    }),
    { seed: propertySeed('sources') },
  );
});

test('a variable that holds no value is refused by its name, unless a flag is given; a secret is never quoted', () => {
  const environment = { TDS_PORT: 'abc' };
  expect(() => effectiveSettings(['port'], { flags: new Map(), environment, file: null })).toThrow(
    'The variable TDS_PORT cannot be "abc". It must be a whole number from 0 to 65535.',
  );
  const flags = new Map([['port', '80']] as const);
  expect(effectiveSettings(['port'], { flags, environment, file: null })[0]?.value).toBe(80);
});

test('variables that look like settings and are none are named', () => {
  const environment = { TDS_PROT: '1', TDS_PORT: '1', TDS_CONFIG: 'x', TDS_TEST_GPU: 'cuda', PATH: '' };
  expect(unknownVariables(environment)).toEqual(['TDS_PROT']);
});

describe('the file', () => {
  test.each([
    ['an unknown name', '[server]\n\nprot = 1', 'Line 3', 'there is no setting server.prot'],
    ['an unknown section', '# c\n[sevrer]', 'Line 2', 'there is no section [sevrer]'],
    [
      'a value outside of its range',
      '[server]\nport = 70000',
      'Line 2',
      'server.port cannot be "70000". It must be a whole number from 0 to 65535.',
    ],
    [
      'a number in quotes',
      '[server]\nport = "80"',
      'Line 2',
      'server.port must be a whole number, without quotes.',
    ],
    ['a word that is not allowed', '[log]\nlevel = "loud"', 'Line 2', 'log.level cannot be "loud".'],
    [
      'a switch that is a text',
      '[data]\ninit = "yes"',
      'Line 2',
      'data.init must be true or false, without quotes.',
    ],
    [
      'an empty secret',
      '[paddle]\n\n\napi_key = ""',
      'Line 4',
      'paddle.api_key cannot be this. It must not be empty.',
    ],
    ['no TOML', '[server]\nport: 80', 'Line 2', 'neither a [section] nor a name = value.'],
  ])('with %s is refused in one sentence that names the line', (_, text, line, words) => {
    const sentence = refusal(fileOf(text));
    expect(sentence).toStartWith(`${line} of ${path}: `);
    expect(sentence).toContain(words);
  });

  test('that is not there is refused when it was named, and is no file otherwise', () => {
    const missing = join(root.path, 'missing.toml');
    expect(refusal(missing)).toContain(`There is no file ${missing}`);
    expect(readConfigFile(undefined, missing)).toBeNull();
    expect(readConfigFile('none')).toBeNull();
  });

  test('that is a directory, or no text, is refused', () => {
    const directory = join(root.path, 'directory');
    mkdirSync(directory);
    expect(refusal(directory)).toContain('is no file');
    expect(refusal(fileOf(new Uint8Array([0xff, 0xfe])))).toContain('no text in UTF-8');
  });

  test.each([0o620, 0o602, 0o666])('that others can write (mode %o) is refused with what to do', (mode) => {
    expect(refusal(fileOf('', mode))).toContain(`run "chmod go-w ${path}"`);
  });

  test('of another user is refused to all but root, and one of root to nobody', () => {
    const judge = (uid: number, user_id: number) => whyUntrusted(path, { mode: 0o644, uid }, user_id);
    expect(judge(1, 2)).toContain('belongs to another user');
    expect([judge(2, 2), judge(0, 2), judge(1, 0)]).toEqual([null, null, null]);
  });

  test('with a secret that everybody can read is used with a warning; without one, or for a group, without', () => {
    const secret = '[client]\nkey = "sk_svc_x"\n';
    expect(readConfigFile(fileOf(secret, 0o644))?.warnings).toEqual([
      `${path} holds secrets that every user can read: run "chmod o-r ${path}".`,
    ]);
    expect(readConfigFile(fileOf(secret, 0o640))?.warnings).toEqual([]);
    expect(readConfigFile(fileOf('[log]\nlevel = "warn"', 0o644))?.warnings).toEqual([]);
  });
});
