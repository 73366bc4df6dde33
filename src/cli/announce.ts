import type { EngineFacts } from '../../native/engine.ts';
import type { ServeConfig } from '../config/settings.ts';
import { standardOutput } from '../log/standard-output.ts';
import type { JsonOptions } from './command.ts';
import { FIRST_ORGANIZATION_NAME } from './initialize.ts';
import { ownerAdvice } from './organizations.ts';

/** An example question for the first request. */
const EXAMPLE_BODY = JSON.stringify({
  model: 'decision-1',
  state: 'Hi, I forgot my password and cannot log in to my account any more. Please help me reset it.',
  questions: {
    reset: { type: 'noul', instructions: 'Does the customer want to reset a password?' },
    topic: {
      type: 'choice',
      instructions: 'What is the message about?',
      criteria: {
        password: 'resetting a password',
        delivery: 'where an order is',
        invoice: 'getting an invoice',
      },
    },
  },
});

/** The evaluators in words. */
const EVALUATOR_NAMES = {
  addon: 'the addon',
  llama: 'node-llama-cpp ("tds doctor" says why not by the addon)',
} as const satisfies Record<EngineFacts['evaluator'], string>;

/** The message of a start, here and in a log file. */
export const SERVING = 'serving';

/** The first key, or the file with it. */
export type FirstKey = { readonly api_key: string } | { readonly api_key_file: string };

/** The facts of a start. */
interface Start {
  readonly address: string;
  /** Null where the database was filled before. */
  readonly first: FirstKey | null;
  readonly engine: EngineFacts | null;
  readonly metrics_url: string | undefined;
  readonly time_ms: number;
}

/**
 * Tells of a start on standard output. A terminal gets sentences and a curl line that asks a real question, or with
 * `--json` a document. Everything else gets one line of JSON in the form of the log.
 */
export function announce(start: Start, options: JsonOptions & ServeConfig): void {
  standardOutput.write(`${announcement(start, options, process.stdout.isTTY)}\n`);
}

function announcement(start: Start, options: JsonOptions & ServeConfig, is_terminal: boolean): string {
  const { address, first, engine, metrics_url, time_ms } = start;
  const console_url = options.console === 'on' ? `${options.publicUrl ?? address}/console` : undefined;
  const advice = first === null || options.owner !== undefined ? undefined : OWNER_ADVICE;
  const facts = { address, console: console_url, metrics_url, ...first, engine: engine && shown(engine) };
  if (!is_terminal) {
    const time = new Date(time_ms).toISOString();
    const example = curlLine(address, first);
    return JSON.stringify({ level: 'info', time, ...facts, advice, example, msg: SERVING });
  }
  if (options.json) return JSON.stringify(facts, null, 2);
  return [
    `Typed Decision Service on ${address}${options.apiReference === 'on' ? ` (API reference: ${address}/swagger)` : ''}`,
    ...(engine === null ? [] : engineLines(engine)),
    ...(console_url === undefined ? [] : [`Console: ${console_url}`]),
    ...(metrics_url === undefined ? [] : [`Metrics: ${metrics_url}`]),
    ...(first !== null && 'api_key' in first
      ? [`First API key, shown only this once: ${first.api_key}`]
      : []),
    ...(advice === undefined ? [] : [advice]),
    'Ask it something:',
    curlLine(address, first),
  ].join('\n');
}

const OWNER_ADVICE = `Organization: ${FIRST_ORGANIZATION_NAME}. ${ownerAdvice(Bun.$.escape(FIRST_ORGANIZATION_NAME))}`;

/** Returns the facts about an engine that an operator needs: of its temperatures only that there are some. */
function shown({ temperatures, reads_states: _, ...facts }: EngineFacts) {
  return { ...facts, calibrated: temperatures !== null };
}

function engineLines(engine: EngineFacts): readonly string[] {
  const model = `Model: ${engine.profile} on ${engine.device}, evaluated by ${EVALUATOR_NAMES[engine.evaluator]}`;
  return [
    model,
    ...(engine.warning === undefined ? [] : [engine.warning]),
    ...(engine.missing_gpu === undefined ? [] : [`The GPU is not used: ${engine.missing_gpu}`]),
  ];
}

/** A request that a shell can run as it stands. */
function curlLine(address: string, first: FirstKey | null): string {
  return `curl -s ${address}/v1/decisions -H ${authorization(first)} -H 'Content-Type: application/json' -d '${EXAMPLE_BODY}'`;
}

/** Returns the header of the curl line, quoted for a shell. */
function authorization(first: FirstKey | null): string {
  if (first === null) return "'Authorization: Bearer <API_KEY>'";
  return 'api_key' in first
    ? `'Authorization: Bearer ${first.api_key}'`
    : `"Authorization: Bearer $(cat ${Bun.$.escape(first.api_key_file)})"`;
}
