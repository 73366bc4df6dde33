import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Command, Option } from 'commander';
import type { Values } from '../config/settings.ts';
import { dataCommand } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { allowRefusedFile, settingsOf } from './command-settings.ts';
import { jsonOrNull } from './json-body.ts';
import { printLine } from './output.ts';
import { findAddress } from './server-addresses.ts';

/** Longer than the service's own checks take. */
const ANSWER_MS = 5_000;

/** The responses of `/healthz` and `/readyz`. */
const Health = Type.Union([
  Type.Object({ status: Type.Union([Type.Literal('ok'), Type.Literal('ready')]) }),
  Type.Object({ status: Type.Literal('not_ready'), failing: Type.Array(Type.String()) }),
]);

interface HealthOptions extends Values<'data'> {
  /** The service's address; undefined looks it up in the data directory. */
  readonly url?: string;
  readonly live?: true;
}

/** Adds `tds health`. */
export function registerHealth(program: Command): void {
  const command = dataCommand(
    program,
    {
      usage: 'health',
      description:
        'ask a running service whether it is ready for requests; exit code 1 when it is not, or does not answer',
      example: 'tds health --data ./data',
    },
    ['data'],
  );
  // A container must not be replaced for an edit of its file, which its service has not read.
  allowRefusedFile(command)
    .addOption(
      new Option('--url <url>', 'address of the service (default: the one that runs on the data directory)'),
    )
    .option('--live', 'ask only whether it answers: one that is not ready must not always be started again')
    .action(async (options: HealthOptions) => {
      const { file_refusal } = settingsOf(command);
      if (file_refusal !== null) process.stderr.write(`tds: ${file_refusal} It is not used here.\n`);
      await checkHealth(options);
    });
}

/** Prints one word if the service is healthy. Throws `CommandFailed` where it is not. */
async function checkHealth({ data, url = findAddress(data, 'service'), live }: HealthOptions): Promise<void> {
  if (url === undefined)
    throw new CommandFailed(`No service runs on ${data}: start it, or name its address with --url.`);
  const asked = URL.parse(live ? '/healthz' : '/readyz', url);
  if (asked === null)
    throw new CommandFailed(`${url} is no address: name one such as http://127.0.0.1:8080.`);
  const health = await ask(asked.href);
  if (health.status === 'not_ready')
    throw new CommandFailed(`The service is not ready: ${health.failing.join(', ')}.`);
  printLine(health.status);
}

async function ask(url: string): Promise<Static<typeof Health>> {
  let body: unknown;
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(ANSWER_MS),
      redirect: 'manual',
      // The environment's proxy may not reach this machine.
      proxy: false,
      // The certificate is for the name that clients use. Nothing secret is sent or read.
      tls: { rejectUnauthorized: false },
    });
    body = await jsonOrNull(response);
  } catch (error) {
    throw new CommandFailed(`There is no answer from ${url}.`, { cause: error });
  }
  if (!Value.Check(Health, body)) throw new CommandFailed(`${url} is not answered by this service.`);
  return body;
}
