import {
  type DecisionInput,
  type DecisionPlan,
  expectedDuration_ms,
  type SchedulePlan,
} from '../../native/engine.ts';
import { overloaded } from '../errors/errors.ts';
import { JsonObject } from '../json/json-value.ts';
import { answerFrom } from '../questions/question.ts';
import { MS_PER_S } from '../time/clock.ts';
import type { Decided, HeldRequest, OutcomeFacts } from './call.ts';
import { type AskedRequest, isLoad, refusedByModel } from './model-refusal.ts';
import { evaluationLimit_ms, ModelDeadline, ModelTime } from './model-time.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';
import type { DecisionRequest } from './request.ts';

/** Runs the step `answer`: returns the model's answers, or its refusal. A request without a plan is refused here. */
export async function askModel(
  services: DecisionServices,
  held: HeldRequest,
  facts: OutcomeFacts,
): Promise<Decided | DecisionRefusal> {
  const { plan, call } = held;
  if (plan instanceof DecisionRefusal) return plan;
  const time = new ModelTime(services.clock, call.span);
  facts.model_time = time;
  facts.record_tokens_left_out = plan.record_tokens_left_out;
  const decided = await askPatiently(services, held, 'model', () =>
    askOnce(services, held, plan, facts, time),
  );
  time.end(decided instanceof DecisionRefusal ? decided : null);
  return decided instanceof DecisionRefusal ? decided : { ...decided, latency_ms: time.latency_ms };
}

/** Returns the model's answer, or its refusal. A line of a batch asks again for as long as the reason is load. */
export async function askPatiently<Answer>(
  services: Pick<DecisionServices, 'problems' | 'cut_requests' | 'pause'>,
  checked: AskedRequest,
  step: 'plan' | 'model',
  ask: () => Promise<Answer>,
): Promise<Answer | DecisionRefusal> {
  const { patience } = checked.call;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const refusal = refusedByModel(services, checked, step, error);
      if (patience === null || !isLoad(error)) return refusal;
      await services.pause((refusal.retry_after_s ?? 1) * MS_PER_S, patience);
      if (patience.aborted) return overloaded('ended_batch');
    }
  }
}

/** Returns the answers of one try. Rejects as the model, its queue and its deadline do. */
async function askOnce(
  { model_time }: DecisionServices,
  { request, caller, call, served }: HeldRequest,
  plan: DecisionPlan,
  facts: OutcomeFacts,
  time: ModelTime,
): Promise<Omit<Decided, 'latency_ms'>> {
  const scope = caller.organization_id;
  using slot = await served.scheduler.take(scope, call.patience);
  time.has_slot = true;
  const evaluation_ms = () => {
    const speed = served.speed();
    const expected_ms = speed === undefined ? undefined : expectedDuration_ms(speed, plan.plans);
    return evaluationLimit_ms(model_time.evaluation_ms, expected_ms);
  };
  using deadline = new ModelDeadline(call.signal, { waiting_ms: model_time.waiting_ms, evaluation_ms });
  const schedulePlan: SchedulePlan = (scheduled, work, given_up) => {
    deadline.wait(() => slot.retryAfter_s());
    let end = () => {};
    const begin = () => {
      deadline.begin();
      end = time.begin();
      return work();
    };
    return slot.run(scheduled, begin, given_up).finally(() => end());
  };
  const answer = await served.answer(plan, { scope, signal: deadline.signal, schedulePlan, evaluation_ms });
  if (answer.record_tokens_left_out !== undefined)
    facts.record_tokens_left_out = answer.record_tokens_left_out;
  return { answers: answersOf(request, answer.scores), input_tokens: answer.input_tokens };
}

/** Returns the request in the engine's form. */
export function engineInput(request: DecisionRequest): DecisionInput {
  return {
    state: request.state,
    questions: request.questions.map((asked) => asked.question),
    mode: request.mode,
  };
}

/** Returns the answers of a request, by the model's scores of its questions. */
export function answersOf(
  { questions }: DecisionRequest,
  scores: readonly (readonly number[])[],
): Decided['answers'] {
  return JsonObject.of(questions.map((asked, index) => [asked.id, answerFrom(asked, scores[index] ?? [])]));
}
