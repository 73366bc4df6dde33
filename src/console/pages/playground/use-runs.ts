import { useEffect, useRef, useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { isMode, type Mode } from '../../../questions/types-and-modes.ts';
import type { DecisionResponse } from '../../api/playground.ts';
import { type ApiError, api, asApiError, callWithHeaders } from '../client.ts';
import { pause } from '../pause.ts';
import { type AskedQuestion, askedQuestions, backward, type Order } from './asked.ts';

/** One request of a comparison, and its outcome. */
export interface Run {
  readonly model: string;
  readonly mode: Mode;
  readonly order: Order;
  readonly outcome: Outcome;
}

export type Outcome =
  /** The previous one is still running. */
  | { readonly state: 'waiting' }
  | { readonly state: 'asking'; readonly since_ms: number }
  /** The service gave the time at which it will be ready; the request is repeated then, once. */
  | { readonly state: 'warming_up'; readonly until_ms: number }
  | ({ readonly state: 'answered' } & Answered)
  | { readonly state: 'failed'; readonly error: ApiError }
  | { readonly state: 'aborted'; readonly may_be_charged: boolean };

export interface Answered {
  readonly decision: DecisionResponse;
  readonly request_id: string | null;
  /** Milliseconds in the service, including the model's; null where it gave none. */
  readonly service_ms: number | null;
  /** The names of fields of the request that nothing read. */
  readonly ignored_fields: readonly string[];
  /** The tokens in the middle of the record that a question did not see. */
  readonly record_tokens_left_out: number;
}

/** An answered run, as it can be kept. */
export type KeptOutcome = Pick<Run, 'model' | 'mode' | 'order'> & Answered;

/** A request, and its answers so far. */
export interface Comparison {
  /** The body as it was written: each run names its model and mode, and may have the options backward. */
  readonly body: JsonObject<JsonValue>;
  readonly questions: readonly AskedQuestion[];
  readonly runs: readonly Run[];
  /** True if the answers were recorded when this version was made. */
  readonly is_recorded: boolean;
}

export interface Runs {
  readonly comparison: Comparison | undefined;
  readonly is_running: boolean;
  /** Asks these models in these modes, one after the other, so that each has its own latency. */
  readonly start: (key_id: string, body: JsonObject<JsonValue>, asked: Asked) => void;
  /** Asks the same again with the options backward, of every model and mode that answered. */
  readonly startBackward: (key_id: string) => void;
  /** Shows recorded answers to a body, in fast mode. */
  readonly showRecorded: (body: JsonObject<JsonValue>, decision: DecisionResponse) => void;
  /** Shows a comparison that was kept. */
  readonly showKept: (body: JsonObject<JsonValue>, outcomes: readonly KeptOutcome[]) => void;
  readonly abort: () => void;
  /** Forgets all answers. */
  readonly clear: () => void;
}

/** Which runs a comparison has: each of the models in each of the modes. */
export interface Asked {
  readonly models: readonly string[];
  readonly modes: readonly Mode[];
}

/** Asks with keys of an organization; `onEnd` is given each comparison in which something was answered. */
export function useRuns(
  organization_id: string,
  onEnd: (body: JsonObject<JsonValue>, outcomes: readonly KeptOutcome[]) => void,
): Runs {
  const [comparison, setComparison] = useState<Comparison>();
  const running = useRef<AbortController | null>(null);
  const [is_running, setRunning] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const run = async (key_id: string, asked: Comparison) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const isCurrent = () => running.current === controller;
    setComparison(asked);
    setRunning(true);
    let is_refused = false;
    const outcomes = asked.runs.map(({ outcome }) => outcome);
    for (const [at, { model, mode, order, outcome }] of asked.runs.entries()) {
      if (outcome.state !== 'waiting') continue;
      const tell = (told: Outcome) => {
        outcomes[at] = told;
        if (isCurrent()) setComparison((all) => all && withOutcome(all, at, told));
      };
      if (signal.aborted || is_refused) {
        tell({ state: 'aborted', may_be_charged: false });
        continue;
      }
      const ordered = order === 'reversed' ? backward(asked.body) : asked.body;
      const sent = runBody(ordered, { model, mode });
      const told = await askOnceMore({ organization_id, key_id, text: writeJson(sent), signal }, tell);
      // An error of the request itself is the same in every mode.
      is_refused = told.state === 'failed' && told.error.status >= 400 && told.error.status < 500;
      tell(told);
    }
    const answered = asked.runs.flatMap(({ model, mode, order }, at): readonly KeptOutcome[] => {
      const { state, ...outcome } = outcomes[at] ?? { state: 'waiting' };
      return state === 'answered' && 'decision' in outcome ? [{ model, mode, order, ...outcome }] : [];
    });
    if (answered.length > 0) onEnd(asked.body, answered);
    if (isCurrent()) setRunning(false);
  };

  return {
    comparison,
    is_running,
    start: (key_id, body, { models, modes }) => {
      const runs = models.flatMap((model) => modes.map((mode) => waiting({ model, mode }, 'as_written')));
      void run(key_id, { body, questions: askedQuestions(body), runs, is_recorded: false });
    },
    startBackward: (key_id) => {
      if (comparison === undefined) return;
      const as_written = comparison.runs.filter(({ order }) => order === 'as_written');
      const answered = as_written.filter(({ outcome }) => outcome.state === 'answered');
      const runs = [...as_written, ...answered.map((answer) => waiting(answer, 'reversed'))];
      void run(key_id, { ...comparison, runs });
    },
    showRecorded: (body, decision) => {
      const outcome = {
        state: 'answered',
        decision,
        request_id: null,
        service_ms: null,
        ignored_fields: [],
        record_tokens_left_out: 0,
      } as const;
      const runs = [{ model: decision.model, mode: 'fast', order: 'as_written', outcome }] as const;
      setComparison({ body, questions: askedQuestions(body), runs, is_recorded: true });
    },
    showKept: (body, outcomes) => {
      running.current?.abort();
      running.current = null;
      setRunning(false);
      const runs = outcomes.map(({ model, mode, order, ...answered }): Run => {
        return { model, mode, order, outcome: { state: 'answered', ...answered } };
      });
      setComparison({ body, questions: askedQuestions(body), runs, is_recorded: false });
    },
    abort: () => running.current?.abort(),
    clear: () => {
      running.current?.abort();
      running.current = null;
      setRunning(false);
      setComparison(undefined);
    },
  };
}

/** The body that is sent for a run. */
export function runBody(
  body: JsonObject<JsonValue>,
  { model, mode }: Pick<Run, 'model' | 'mode'>,
): JsonObject<JsonValue> {
  return withMode(withModel(body, model), mode);
}

/** The body in that mode; a value that is no mode is left, because the service says what is wrong with it. */
function withMode(body: JsonObject<JsonValue>, mode: Mode): JsonObject<JsonValue> {
  const written = body.get('mode') ?? null;
  return written === null || isMode(written) ? body.with('mode', mode) : body;
}

/** The body to that model; a value that is no text is left, for the same reason. */
function withModel(body: JsonObject<JsonValue>, model: string): JsonObject<JsonValue> {
  return typeof body.get('model') === 'string' ? body.with('model', model) : body;
}

function waiting({ model, mode }: Pick<Run, 'model' | 'mode'>, order: Order): Run {
  return { model, mode, order, outcome: { state: 'waiting' } };
}

function withOutcome(comparison: Comparison, at: number, outcome: Outcome): Comparison {
  const run = comparison.runs[at];
  if (run === undefined) return comparison;
  return { ...comparison, runs: comparison.runs.with(at, { ...run, outcome }) };
}

interface Question {
  readonly organization_id: string;
  readonly key_id: string;
  /** The body as sent, because a plain object would not keep the order of all options. */
  readonly text: string;
  readonly signal: AbortSignal;
}

/** Asks, and once more if the model is warming up and the service says when it will be ready. */
async function askOnceMore(question: Question, tell: (outcome: Outcome) => void): Promise<Outcome> {
  tell({ state: 'asking', since_ms: Date.now() });
  const first = await ask(question);
  if (first.state !== 'failed') return first;
  const { code, retry_after_s } = first.error;
  if (code !== 'model_warming_up' || retry_after_s === null) return first;
  const delay_ms = retry_after_s * 1_000;
  tell({ state: 'warming_up', until_ms: Date.now() + delay_ms });
  await pause(delay_ms, question.signal);
  if (question.signal.aborted) return { state: 'aborted', may_be_charged: false };
  tell({ state: 'asking', since_ms: Date.now() });
  return await ask(question);
}

async function ask({ organization_id, key_id, text, signal }: Question): Promise<Outcome> {
  try {
    const { data, headers } = await callWithHeaders(
      api
        .organizations({ organization_id })
        .playground({ key_id })
        .post(text, {
          headers: { 'content-type': 'application/json' },
          fetch: { signal },
        }),
    );
    const service_ms = headers.get('service-processing-ms');
    return {
      state: 'answered',
      decision: data,
      request_id: headers.get('x-request-id'),
      service_ms: service_ms === null ? null : Number(service_ms),
      ignored_fields: ignoredFields(headers),
      record_tokens_left_out: Number(headers.get('tds-record-tokens-left-out') ?? 0),
    };
  } catch (thrown) {
    // The service may have answered already, or answer all the same.
    if (signal.aborted) return { state: 'aborted', may_be_charged: true };
    return { state: 'failed', error: asApiError(thrown) };
  }
}

function ignoredFields(headers: Headers): readonly string[] {
  const names = headers.get('tds-ignored-fields');
  return names === null ? [] : names.split(', ').map(decodeURIComponent);
}
