import { expect, test } from 'bun:test';
import { dependencies } from '../../package.json' with { type: 'json' };
import type { LicensedPart } from '../../src/program/licenses.ts';
import { inProcess, tds } from './support.ts';

test('tds licenses has every dependency with its version and a text, the weights and the engine', async () => {
  const { code, stdout, stderr } = await tds(['licenses', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const parts: readonly LicensedPart[] = JSON.parse(stdout);
  const names = parts.map(({ name }) => name);
  const expected = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
  expect(expected.filter((name) => !names.includes(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
  const textOf = (start: string) => parts.find(({ name }) => name.startsWith(start))?.text;
  expect(textOf('decision-1')).toContain('SmolLM2-135M-Instruct');
  expect(textOf('decision-1')).toContain('Apache License');
  expect(textOf('llama.cpp')).toContain('The ggml authors');
  expect(textOf('node-llama-cpp ')).toContain('MIT License');
  expect(textOf('elysia ')).toContain('Permission is hereby granted');
  // A package without a license file is reported as such.
  expect(textOf('drizzle-orm ')).toStartWith('The package has no file with its license;');
});

test('its text has every part, and equal licenses once', async () => {
  const [{ stdout }, json] = await Promise.all([inProcess(['licenses']), inProcess(['licenses', '--json'])]);
  const parts: readonly LicensedPart[] = JSON.parse(json.stdout);
  const headings = stdout.split('\n').filter((line) => line.startsWith('==== '));
  expect(headings.sort()).toEqual(parts.map(({ name, license }) => `==== ${name} (${license})`).sort());
  const texts = parts.map(({ text }) => text);
  expect(texts.filter((text) => !stdout.includes(`\n\n${text}\n\n`))).toEqual([]);
  expect(stdout.length).toBeLessThan(texts.join('').length);
});
