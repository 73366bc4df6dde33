import { join } from 'node:path';
import { type Argument, Command, type Option } from 'commander';
import { createProgram } from '../../src/cli/program.ts';

/** The document of all commands; `bun test/support/command-reference.ts` writes it. */
export const REFERENCE_FILE = join(import.meta.dir, '../../COMMANDS.md');

/** A command that does something, with its words after `tds`. */
export interface LeafCommand {
  readonly words: string;
  readonly command: Command;
}

/** Returns every command that does something, in the order of the help. */
export function leafCommands(
  command = createProgram(),
  words: readonly string[] = [],
): readonly LeafCommand[] {
  if (command.commands.length === 0) return [{ words: words.join(' '), command }];
  return command.commands.flatMap((child) => leafCommands(child, [...words, child.name()]));
}

/** Returns the text of `--help`, broken into lines of that width. */
export function helpOf(command: Command, width?: number): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => (text += part),
    ...(width === undefined ? {} : { getOutHelpWidth: () => width }),
  });
  command.outputHelp();
  return text;
}

/** Options with the same text in so many commands are said once. */
const SHARED_BY = 50;
const UNBROKEN = 100_000;
/** The part of a help about settings without a flag: `serve` has its own in full, and those of the client are here. */
const WITHOUT_FLAG = /^Only by variable or file/;
const WITH_FLAGLESS: readonly string[] = ['serve', 'decide', 'mcp'];

/** Returns the document, in Markdown. */
export function commandReference(): string {
  const all = leafCommands();
  const shared = all
    .flatMap(({ command }) => command.options)
    .filter((option, index, options) => {
      const same = options.filter((other) => sameOption(option, other));
      return same.length >= SHARED_BY && options.findIndex((other) => sameOption(option, other)) === index;
    });
  const serve = all.find(({ words }) => words === 'serve');
  const settings = (serve?.command.options ?? []).filter((option) => !isIn(shared, option));
  return [
    '# Commands',
    '',
    'Written by `bun test/support/command-reference.ts` from the `--help` of every command. `OPERATIONS.md` says when to use which.',
    'Exit codes: 0 done; 1 refused or failed, with a sentence on standard error; 2 wrong usage or settings; 128 and the number',
    'of a signal that stopped it.',
    '',
    ...table(
      ['command', 'what it does'],
      all.map(({ words, command }) => [
        `[\`tds ${words}\`](#tds-${words.replaceAll(' ', '-')})`,
        command.description(),
      ]),
    ),
    '',
    '## Options of most commands',
    '',
    ...optionTable(shared),
    ...all.flatMap(({ words, command }) =>
      section(words, command, shared, words === 'serve' ? [] : settings),
    ),
    '',
  ].join('\n');
}

/** Returns the lines of a command. Of the settings of `serve` it has only the names. */
function section(
  words: string,
  command: Command,
  shared: readonly Option[],
  settings: readonly Option[],
): readonly string[] {
  const own = command.options.filter((option) => !isIn(shared, option));
  const described = own.filter((option) => !isIn(settings, option));
  const named = own.filter((option) => isIn(settings, option)).map(({ flags }) => `\`${flags}\``);
  return [
    '',
    `## tds ${words}`,
    '',
    '```text',
    `tds ${words} ${command.usage()}`,
    ...afterOptions(command, WITH_FLAGLESS.includes(words)),
    '```',
    ...argumentTable(command.registeredArguments),
    ...(described.length === 0 ? [] : ['', ...optionTable(described)]),
    ...(named.length === 0 ? [] : ['', `As of [\`tds serve\`](#tds-serve): ${named.join(', ')}.`]),
  ];
}

/** Returns the lines of a help behind its options: notes and examples. */
function afterOptions(command: Command, with_flagless: boolean): readonly string[] {
  const lines = helpOf(command, UNBROKEN).trimEnd().split('\n');
  const rest = lines.slice(lines.findIndex((line) => line.includes('-h, --help')) + 1).join('\n');
  return rest
    .split('\n\n')
    .map((part) => part.replace(/^\n/, ''))
    .filter((part) => part !== '' && (with_flagless || !WITHOUT_FLAG.test(part)))
    .flatMap((part) => ['', ...part.split('\n')]);
}

function argumentTable(args: readonly Argument[]): readonly string[] {
  const described = args.filter(({ description }) => description !== '');
  if (described.length === 0) return [];
  return [
    '',
    ...table(
      ['argument', 'what it is'],
      described.map((arg) => [`\`${arg.name()}\``, textOf(arg)]),
    ),
  ];
}

function optionTable(options: readonly Option[]): readonly string[] {
  return table(
    ['option', 'what it is'],
    options.map((option) => [`\`${option.flags}\``, textOf(option)]),
  );
}

/** Returns a description as the help has it, with choices and default. */
function textOf(described: Argument | Option): string {
  const help = new Command().createHelp();
  return 'flags' in described ? help.optionDescription(described) : help.argumentDescription(described);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return [rowOf(head), `|${'---|'.repeat(head.length)}`, ...rows.map(rowOf)];
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
}

function isIn(options: readonly Option[], option: Option): boolean {
  return options.some((other) => sameOption(option, other));
}

function sameOption(one: Option, other: Option): boolean {
  return one.flags === other.flags && one.description === other.description;
}

if (import.meta.main) await Bun.write(REFERENCE_FILE, commandReference());
