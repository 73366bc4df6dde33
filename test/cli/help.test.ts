import { describe, expect, test } from 'bun:test';
import { unknownVariables } from '../../src/config/effective.ts';
import { commandReference, helpOf, leafCommands, REFERENCE_FILE } from '../support/command-reference.ts';

const all = leafCommands();

test('the command line has the words that scripts rely on', () => {
  expect(all.map(({ words }) => words)).toEqual(
    expect.arrayContaining([
      'serve',
      'init',
      'org create',
      'org list',
      'org credit',
      'org tier',
      'org rename',
      'user create',
      'user list',
      'member add',
      'member remove',
      'member role',
      'member list',
      'project create',
      'project list',
      'project limit',
      'project archive',
      'project rename',
      'key create',
      'key list',
      'key revoke',
      'credit refund',
      'credit history',
      'credit events',
      'credit assign',
      'credit dismiss',
      'usage export',
      'model list',
      'model add',
      'model open',
      'model close',
      'model remove',
      'model price',
      'model alias',
      'audit',
      'database copy',
      'decide',
    ]),
  );
});

test('COMMANDS.md is what --help says: "bun test/support/command-reference.ts" writes it', async () => {
  expect(await Bun.file(REFERENCE_FILE).text()).toBe(commandReference());
});

describe('help', () => {
  for (const { words, command } of all) {
    test(`of tds ${words} describes it and shows an example of it`, () => {
      const help = helpOf(command);
      expect(command.description()).not.toBe('');
      expect(help).toContain(`$ tds ${words}`);
      expect(help).toContain('--data <directory>');
    });
  }

  test('offers a database to the commands that use one', () => {
    const without = all
      .filter(({ command }) => !command.options.some(({ long }) => long === '--database'))
      .map(({ words }) => words);
    // A copy names both of its databases itself.
    expect(without.toSorted()).toEqual(['database copy', 'decide', 'health', 'licenses', 'mcp', 'top']);
  });
});

test('a variable that an option reads is not warned of', () => {
  const variables = all.flatMap(({ command }) => command.options.flatMap(({ envVar }) => envVar ?? []));
  expect(variables).toContain('TDS_METRICS_URL');
  expect(unknownVariables(Object.fromEntries(variables.map((name) => [name, 'x'])))).toEqual([]);
});
