import { type Command, Option } from 'commander';
import { modelOptions } from '../config.ts';
import { dataOption } from './command.ts';
import type { DecideOptions } from './run-decide.ts';

/** `tds decide` */
export function registerDecide(program: Command): void {
  const command = program
    .command('decide <file>')
    .description(
      'ask the questions in a JSON file (- for standard input), of a running service or in process',
    )
    .addOption(
      new Option('--url <address>', 'the running service').env('TDS_URL').default('http://127.0.0.1:8080'),
    )
    .addOption(new Option('--key <key>', 'API key; better given by its variable').env('TDS_API_KEY'))
    .option('--local', 'answer in process: no service, no key, nothing is billed')
    .addOption(
      new Option('--mode <mode>', 'the mode when the file names none').choices(['fast', 'consistent']),
    )
    .option('--json', 'print JSON')
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nThe file is the body of POST /v1/decisions; its model may be left out.\n\nExample:\n  $ tds decide question.json --local',
    );
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (file: string, options: DecideOptions) => {
    // Loaded only here: the model's library would slow every other command down.
    const { runDecide } = await import('./run-decide.ts');
    await runDecide(file, options);
  });
}
