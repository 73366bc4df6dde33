import type { EngineFacts } from '../../native/engine.ts';
import type { ServeConfig } from '../config/settings.ts';
import { standardOutput } from '../ops/standard-output.ts';
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

/** The first key, or the file with it. */
export type FirstKey = { readonly api_key: string } | { readonly api_key_file: string };

/** Prints the address, the engine, the first key or its file, and one line that asks an example question. */
export function announce(
  address: string,
  first: FirstKey | null,
  engine: EngineFacts | null,
  options: JsonOptions & ServeConfig & { readonly metrics_url: string | undefined },
): void {
  const { metrics_url } = options;
  const console_url = options.console === 'on' ? `${options.publicUrl ?? address}/console` : undefined;
  const lines = options.json
    ? [JSON.stringify({ address, console: console_url, metrics_url, ...first, engine }, null, 2)]
    : [
        `Typed Decision Service on ${address}${options.apiReference === 'on' ? ` (API reference: ${address}/swagger)` : ''}`,
        ...(engine === null ? [] : engineLines(engine)),
        ...(console_url === undefined ? [] : [`Console: ${console_url}`]),
        ...(metrics_url === undefined ? [] : [`Metrics: ${metrics_url}`]),
        ...(first === null ? [] : [keyLine(first)]),
        ...(first === null || options.owner !== undefined ? [] : [OWNER_LINE]),
        'Ask it something:',
        `curl -s ${address}/v1/decisions -H ${authorization(first)} -H 'Content-Type: application/json' -d '${EXAMPLE_BODY}'`,
      ];
  standardOutput.write(`${lines.join('\n')}\n`);
}

const OWNER_LINE = `Organization: ${FIRST_ORGANIZATION_NAME}. ${ownerAdvice(Bun.$.escape(FIRST_ORGANIZATION_NAME))}`;

function engineLines(engine: EngineFacts): readonly string[] {
  const model = `Model: ${engine.profile} on ${engine.device}, evaluated by ${EVALUATOR_NAMES[engine.evaluator]}`;
  return engine.missing_gpu === undefined ? [model] : [model, `The GPU is not used: ${engine.missing_gpu}`];
}

function keyLine(first: FirstKey): string {
  return 'api_key' in first
    ? `First API key, shown only this once: ${first.api_key}`
    : `First API key, shown nowhere else: in ${first.api_key_file}, which only its owner can read`;
}

/** Returns the header of the curl line, quoted for a shell. */
function authorization(first: FirstKey | null): string {
  if (first === null) return "'Authorization: Bearer <API_KEY>'";
  return 'api_key' in first
    ? `'Authorization: Bearer ${first.api_key}'`
    : `"Authorization: Bearer $(cat ${Bun.$.escape(first.api_key_file)})"`;
}
