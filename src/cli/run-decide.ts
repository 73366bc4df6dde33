import { Value } from '@sinclair/typebox/value';
import { openEngine, PlanRejected, SetupError } from '../../native/engine.ts';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { openOptions } from '../config/open-options.ts';
import { type ModelConfig, SERVICE_URL, type Values } from '../config/settings.ts';
import { answersOf, engineInput } from '../decisions/answer-request.ts';
import { roundedLatency } from '../decisions/model-time.ts';
import { type DecisionRequest, missingField, parseDecisionRequest } from '../decisions/request.ts';
import { type DecisionResponse, DecisionResponseSchema } from '../decisions/schemas.ts';
import { Refusal } from '../errors/errors.ts';
import { ErrorResponseSchema } from '../http/schemas.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';
import type { Answer } from '../questions/question.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import type { DataOptions } from './command.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';
import { jsonOrNull } from './json-body.ts';
import { printJson, printLine, printTable } from './output.ts';
import { readQuestionFile } from './question-file.ts';

/** The options of `tds decide`. */
export interface DecideOptions extends DataOptions, ModelConfig, Values<'url' | 'key'> {
  readonly local?: true;
  readonly batch?: string;
  readonly output?: string;
  readonly mode?: string;
  readonly json?: true;
}

/** The common result of asking a service and asking locally. */
interface Outcome {
  readonly answers: Readonly<Record<string, Answer>>;
  readonly input_tokens: number;
  readonly latency_ms: number;
  /** The document of `--json`: the service's whole response, or the part of it that a local answer has. */
  readonly document: unknown;
}

/** Asks the questions in the file and prints the answers. Throws `CommandFailed`. */
export async function runDecide(file: string, options: DecideOptions): Promise<void> {
  const body = await readQuestionFile(file);
  const outcome = options.local ? await decideLocally(body, options) : await askService(body, options);
  if (options.json) printJson(outcome.document);
  else printOutcome(outcome);
}

async function decideLocally(body: JsonObject<JsonValue>, options: DecideOptions): Promise<Outcome> {
  const request = checkedRequest(body, options.mode ?? null);
  warnOfModel(body.get('model'), options.model ?? DEFAULT_MODEL);
  const engine = await inOneSentence([SetupError], () => openEngine(openOptions(options)));
  try {
    return await inOneSentence([PlanRejected], async () => {
      const plan = await engine.plan(engineInput(request));
      const began_ms = performance.now();
      const signal = AbortSignal.timeout(CLIENT_TIMEOUT_MS);
      const answers = answersOf(request, await engine.evaluate(plan, { scope: 'local', signal }));
      const latency_ms = roundedLatency(performance.now() - began_ms);
      const { input_tokens } = plan;
      const usage = { input_tokens, decisions: request.questions.length };
      const document: Pick<DecisionResponse, 'answers'> = JSON.parse(
        writeJson({ object: 'decision', mode: request.mode, answers, usage, latency_ms }),
      );
      return { answers: document.answers, input_tokens, latency_ms, document };
    });
  } finally {
    await engine.close();
  }
}

/** Says that other weights answer than the model that the file names. */
function warnOfModel(named: JsonValue | undefined, answering: string): void {
  if (named === undefined || named === answering) return;
  process.stderr.write(`tds: ${answering} answers in place of the file's model, which is for a service.\n`);
}

/** Makes the service's checks, but that of the number of questions: no organization asks here. */
function checkedRequest(body: JsonObject<JsonValue>, mode: string | null): DecisionRequest {
  const missing = missingField(body);
  if (missing !== null) throw refused(missing);
  const request = parseDecisionRequest(body, mode, Number.POSITIVE_INFINITY);
  if (request instanceof Refusal) throw refused(request);
  if (request.rejection !== null) throw refused(request.rejection);
  return request;
}

function refused(refusal: Refusal): CommandFailed {
  const where = refusal.param === null ? '' : ` (${refusal.param})`;
  return new CommandFailed(`${refusal.code}${where}: ${refusal.message}`);
}

async function askService(body: JsonObject<JsonValue>, options: DecideOptions): Promise<Outcome> {
  if (options.key === undefined) {
    throw new CommandFailed('An API key is needed: set TDS_API_KEY, or answer in process with --local.');
  }
  const { url: service = SERVICE_URL } = options;
  const url = new URL('/v1/decisions', service);
  if (options.mode !== undefined) url.searchParams.set('mode', options.mode);
  let response: Response;
  let document: unknown;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json' },
      body: writeJson(body.get('model') === undefined ? body.with('model', DEFAULT_MODEL) : body),
      signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
      // The record is sent only to this address, through the environment's proxy for it, and never to a
      // redirect.
      redirect: 'manual',
    });
    document = await jsonOrNull(response);
  } catch (error) {
    throw new CommandFailed(
      `No service answers at ${service}: start one with "tds serve", name another with --url, or use --local.`,
      { cause: error },
    );
  }
  if (Value.Check(ErrorResponseSchema, document)) {
    const { code, message, param } = document.error;
    throw new CommandFailed(
      `${response.status} ${code}${param === null ? '' : ` (${param})`}: ${message} [${document.request_id}]`,
    );
  }
  if (!Value.Check(DecisionResponseSchema, document)) {
    throw new CommandFailed(`What answers at ${service} is not this service (HTTP ${response.status}).`);
  }
  const { answers, usage, latency_ms } = document;
  return { answers, input_tokens: usage.input_tokens, latency_ms, document };
}

function printOutcome(outcome: Outcome): void {
  printTable(
    ['QUESTION', 'ANSWER', 'PROBABILITIES'],
    Object.entries(outcome.answers).map(([id, answer]) => [
      id,
      mainAnswer(answer),
      probabilitiesText(answer),
    ]),
    'No answers.',
  );
  printLine(`${outcome.input_tokens} input tokens, ${outcome.latency_ms.toFixed(1)} ms`);
}

function mainAnswer(answer: Answer): string {
  switch (answer.type) {
    case 'noul':
      return answer.noul >= (answer.threshold ?? 0.5) ? 'yes' : 'no';
    case 'choice':
      return answer.choice;
    case 'score':
      return answer.score.toFixed(2);
  }
}

function probabilitiesOf(answer: Answer): Readonly<Record<string, number>> {
  switch (answer.type) {
    case 'noul':
      return { yes: answer.noul };
    case 'choice':
    case 'score':
      return answer.probabilities;
  }
}

function probabilitiesText(answer: Answer): string {
  return Object.entries(probabilitiesOf(answer))
    .map(([name, probability]) => `${name} ${probability.toFixed(3)}`)
    .join('  ');
}
