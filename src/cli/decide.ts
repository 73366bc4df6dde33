import { type Command, Option } from 'commander';
import { CLIENT_SETTINGS, MODEL_SETTINGS } from '../config/settings.ts';
import { MODES } from '../questions/question.ts';
import { WrongSettings } from './command-failed.ts';
import { addSettings, settingsOf } from './command-settings.ts';
import type { DecideOptions } from './run-decide.ts';

/** Adds `tds decide`. */
export function registerDecide(program: Command): void {
  const command = addSettings(program.command('decide [file]'), [
    ...CLIENT_SETTINGS,
    'data',
    ...MODEL_SETTINGS,
  ])
    .description(
      'ask the questions in a JSON file (- for standard input), of a running service or in process',
    )
    .option('--batch <records>', 'ask them about every record of a CSV or JSONL file, of a running service')
    .option(
      '--output <answers>',
      'with --batch: a .csv or .jsonl file for the answers, with which a later run goes on',
    )
    .option('--local', 'answer in process: no service, no key, nothing is billed')
    .addOption(new Option('--mode <mode>', 'the mode when the file names none').choices(MODES))
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The file is the body of POST /v1/decisions; its model may be left out. With --local the weights of --model answer.

The records of --batch have a column or field "state", or all columns are the record, and perhaps an "id". The first
line of a JSONL file may have the questions in place of FILE. A run that was stopped goes on with the records that have
no answer in --output. Errors are in a file beside it.

Examples:
  $ tds decide question.json --local
  $ tds decide question.json --batch records.csv --output answers.csv`,
    );
  command.action(async (file: string | undefined, options: DecideOptions) => {
    const { batch, output, local, json } = options;
    if (batch === undefined && output !== undefined) throw new WrongSettings('--output is for --batch.');
    if (batch !== undefined && (local === true || json === true)) {
      throw new WrongSettings('--batch asks a running service: it takes neither --local nor --json.');
    }
    const weights = settingsOf(command).effective.find(({ name }) => name === 'model');
    if (local !== true && weights?.origin.from === 'flag') {
      throw new WrongSettings(
        '--model names the weights of --local: a service is asked for the "model" of the file.',
      );
    }
    if (batch !== undefined) {
      const { runBatch } = await import('./batch/run-batch.ts');
      await runBatch(file ?? null, { ...options, batch });
      return;
    }
    if (file === undefined) throw new WrongSettings('Name a JSON file with state and questions, or --batch.');
    // Loaded only here, because the model's library would slow every other command down.
    const { runDecide } = await import('./run-decide.ts');
    await runDecide(file, options);
  });
}
