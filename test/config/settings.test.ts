import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { readConfigFile } from '../../src/config/config-file.ts';
import { exampleFile } from '../../src/config/example.ts';
import { SERVE_SETTINGS, SETTING_NAMES, SETTINGS, settingOf } from '../../src/config/settings.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

function helpOf(name: string): string {
  let text = '';
  const program = createProgram();
  const command = program.commands.find((one: Command) => one.name() === name);
  command
    ?.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 10_000 })
    .outputHelp();
  return text;
}

describe('the table of settings', () => {
  test.each(SETTING_NAMES.map((name) => [name, settingOf(name)] as const))('%s is whole', (name, setting) => {
    expect(setting.help).not.toBe('');
    expect(setting.variable).toMatch(/^TDS(_[A-Z]+)+$/);
    expect(setting.key).toMatch(/^[a-z_]+\.[a-z_]+$/);
    if (setting.flag !== null) expect(new Option(setting.flag).attributeName()).toBe(name);
    const text = setting.example ?? String(setting.default);
    expect(() => setting.kind.parse(text)).not.toThrow();
  });

  test('an address of IPv6 to listen on may be in brackets', () => {
    for (const { kind } of [SETTINGS.host, SETTINGS.metricsHost]) {
      expect(['[::1]', '::1', '127.0.0.1', 'localhost'].map(kind.parse)).toEqual([
        '::1',
        '::1',
        '127.0.0.1',
        'localhost',
      ]);
      expect(() => kind.parse('[]')).toThrow('It must not be empty.');
    }
  });

  test.each([
    ['mailFrom', ['tds@localhost', 'Service <tds@example.com>', '"Acme, Inc." <tds@example.com>', '<a@b>']],
    ['url', ['http://127.0.0.1:8080', 'https://tds.example.com']],
    ['publicUrl', ['https://tds.example.com']],
    // It counts only while there is nobody, and must not stop the start of a service that has users.
    ['owner', ['ada@example.com', 'admin@localhost']],
  ] as const)('%s takes what can be used', (name, texts) => {
    for (const text of texts) expect(SETTINGS[name].kind.parse(text)).toBe(text);
  });

  test.each([
    [
      'mailFrom',
      ['Service', 'Service <tds>', 'a@b.c, d@e.f', 'Acme, Inc. <tds@example.com>', 'a@b <c@d>', 'a@b\nc'],
    ],
    ['url', ['https://example.com/tds', 'https://example.com/?a', 'https://user@example.com', 'example.com']],
    ['publicUrl', ['https://example.com/tds', 'ftp://example.com']],
  ] as const)('%s refuses what would be used only in part', (name, texts) => {
    for (const text of texts) expect(() => SETTINGS[name].kind.parse(text)).toThrow('It must be');
  });

  test('no two settings share a variable or a place in the file, and a section is in one piece', () => {
    const settings = SETTING_NAMES.map(settingOf);
    expect(new Set(settings.map(({ variable }) => variable)).size).toBe(settings.length);
    expect(new Set(settings.map(({ key }) => key)).size).toBe(settings.length);
    const sections = settings.map(({ key }) => key.split('.')[0]);
    const starts = sections.filter((section, index) => section !== sections[index - 1]);
    expect(new Set(starts).size).toBe(starts.length);
  });

  test('a secret has no flag', () => {
    const secrets = SETTING_NAMES.map(settingOf).filter(({ is_secret }) => is_secret);
    expect(secrets.map(({ variable }) => variable)).toContain('TDS_API_KEY');
    expect(secrets.filter(({ flag }) => flag !== null)).toEqual([]);
  });

  test('--help shows what each does, its variable and its place in the file', () => {
    const [config, serve] = [helpOf('config'), helpOf('serve')];
    for (const [help, names] of [
      [config, SETTING_NAMES],
      [serve, SERVE_SETTINGS],
    ] as const) {
      for (const { help: text, variable, key, flag } of names.map(settingOf)) {
        expect(help).toContain(text);
        expect(help).toContain(variable);
        expect(help).toContain(`file: ${key})`);
        if (flag !== null) expect(help).toContain(`  ${flag} `);
      }
    }
  });

  test('a number may be its word in the file, and no other text', () => {
    const root = temporaryDirectory();
    try {
      const path = join(root.path, 'tds.toml');
      const textOf = (threads: string) => {
        writeFileSync(path, `[model]\nthreads = ${threads}\n`, { mode: 0o600 });
        return readConfigFile(path)?.values.get('threads')?.text;
      };
      expect([textOf('"auto"'), textOf('3')]).toEqual(['auto', '3']);
      for (const wrong of ['"3"', '"all"', 'true']) {
        expect(() => textOf(wrong)).toThrow('must be a whole number, without quotes');
      }
      expect(() => textOf('0')).toThrow('It must be auto, or a whole number from 1 to');
    } finally {
      root.remove();
    }
  });

  test('the example changes nothing as it is, and has every setting once the marks are taken away', () => {
    const root = temporaryDirectory();
    try {
      const path = join(root.path, 'tds.toml');
      writeFileSync(path, exampleFile(), { mode: 0o600 });
      expect(readConfigFile(path)?.values.size).toBe(0);
      writeFileSync(path, exampleFile().replaceAll(/^#(?=\S)/gm, ''));
      const values = readConfigFile(path)?.values;
      expect([...(values?.keys() ?? [])]).toEqual([...SETTING_NAMES]);
      for (const [name, { text }] of values ?? []) {
        const { default: value } = settingOf(name);
        if (value !== undefined) expect(text).toBe(String(value));
      }
    } finally {
      root.remove();
    }
  });
});
