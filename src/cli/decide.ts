import { type Command, Option } from 'commander';
import { MODEL_SETTINGS } from '../config/settings.ts';
import { MODES } from '../questions/question.ts';
import type { DecideOptions } from './run-decide.ts';
import { addSettings } from './settings.ts';

/** Adds `tds decide`. */
export function registerDecide(program: Command): void {
  const command = addSettings(program.command('decide <file>'), ['url', 'key', 'data', ...MODEL_SETTINGS])
    .description(
      'ask the questions in a JSON file (- for standard input), of a running service or in process',
    )
    .option('--local', 'answer in process: no service, no key, nothing is billed')
    .addOption(new Option('--mode <mode>', 'the mode when the file names none').choices(MODES))
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe file is the body of POST /v1/decisions; its model may be left out.\n\nExample:\n  $ tds decide question.json --local',
    );
  command.action(async (file: string, options: DecideOptions) => {
    // Loaded only here, because the model's library would slow every other command down.
    const { runDecide } = await import('./run-decide.ts');
    await runDecide(file, options);
  });
}
