import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { largest } from '../../questions/probabilities.ts';
import type { WrittenAnswer } from '../../questions/question.ts';
import { unreadFields } from '../ignored-fields.ts';
import { DecisionRefusal } from '../refusal.ts';
import type { WrittenDecision } from '../schemas.ts';
import { recordOf } from './input.ts';
import { type OpenAiQuestion, openAiQuestionFields, questionOf } from './questions.ts';
import { type OpenAiAnswer, OpenAiDecisionRequestSchema, type WrittenOpenAiDecision } from './schemas.ts';

/**
 * Translates one request from OpenAI's shape to the contract's, and its response back. A body of the
 * contract, and its response, are unchanged.
 */
export class OpenAiTranslation {
  /** Null until the body is known to have OpenAI's shape. */
  #questions: readonly OpenAiQuestion[] | null = null;
  #ignored_fields: readonly string[] = [];
  /** The path of the first image; null for none. */
  #image: string | null = null;

  /**
   * Returns the body in the contract's shape, with the positions of the questions, from 0, as their ids.
   * OpenAI's shape has `input` and no `state`, and its questions are a list. Images become assets, which the model
   * rejects. Refuses a body of both shapes, and one that does not fit; the contract has no order of codes for these.
   */
  request(body: JsonValue): JsonValue | DecisionRefusal {
    const listed = isJsonObject(body) ? body.get('questions') : undefined;
    const input = isJsonObject(body) ? body.get('input') : undefined;
    if (!isJsonObject(body) || input === undefined || !isJsonArray(listed)) return body;
    if (body.get('state') !== undefined) {
      return missingQuestions(
        'The body has two shapes: send "state" with an object of questions, or "input" with a list of questions.',
      );
    }
    if (listed.length === 0) return missingQuestions('The list of questions is empty.');
    const images: string[] = [];
    const state = recordOf(input, images);
    if (state instanceof DecisionRefusal) return state;
    const questions: OpenAiQuestion[] = [];
    for (const [index, value] of listed.entries()) {
      const question = questionOf(value, `questions[${index}]`, images);
      if (question instanceof DecisionRefusal) return question;
      questions.push(question);
    }
    this.#questions = questions;
    this.#image = images[0] ?? null;
    this.#ignored_fields = unreadFields([
      { object: body, fields: Object.keys(OpenAiDecisionRequestSchema.properties) },
      ...listed.filter(isJsonObject).map((object) => ({ object, fields: openAiQuestionFields(object) })),
    ]);
    const asked = JsonObject.of(questions.map(({ question }, index) => [String(index), question]));
    const translated = new JsonObject<JsonValue>(
      ['model', 'state', 'questions'],
      [body.get('model') ?? null, state, asked],
    );
    return images.length === 0 ? translated : translated.with('assets', images);
  }

  /** Returns the decision in the shape of its request. */
  decision(decision: WrittenDecision): WrittenDecision | WrittenOpenAiDecision {
    return this.#questions === null ? decision : openAiDecision(decision, this.#questions);
  }

  /** Returns the fields that nothing read; `of_contract` are those of a body of the contract. */
  ignoredFields(of_contract: readonly string[] = []): readonly string[] {
    return this.#questions === null ? of_contract : this.#ignored_fields;
  }

  /** Returns the refusal with the path of its field in the shape of its request. */
  refusal(refusal: DecisionRefusal): DecisionRefusal {
    const { param } = refusal;
    if (this.#questions === null || param === null) return refusal;
    return refusal.withParam(param === 'assets' ? (this.#image ?? 'input') : openAiParam(param));
  }
}

function missingQuestions(message: string): DecisionRefusal {
  return new DecisionRefusal('missing_questions', { message, param: 'questions' });
}

/** Returns the path of a field of the contract's shape in OpenAI's. */
function openAiParam(param: string): string {
  return param === 'state' ? 'input' : param.replace(/^questions\.(\d+)/, 'questions[$1]');
}

/** Returns the decision in OpenAI's shape. It reports no prompt cache, because all input is billed alike. */
function openAiDecision(
  { model, answers, usage }: WrittenDecision,
  questions: readonly OpenAiQuestion[],
): WrittenOpenAiDecision {
  return {
    model,
    answers: questions.map((question, index) => openAiAnswer(answers.values[index], question)),
    usage: {
      input_tokens: usage.input_tokens,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input_tokens,
      cost_usd: usage.cost_usd,
    },
  };
}

/** Returns an answer in OpenAI's shape. Throws RangeError for a question without one. */
function openAiAnswer(
  answer: WrittenAnswer | undefined,
  { name, values, labels }: OpenAiQuestion,
): OpenAiAnswer {
  switch (answer?.type) {
    case 'noul':
      return { type: 'predicate', name, probability: answer.noul };
    case 'choice': {
      const given = answer.probabilities.values;
      const probabilities = values.map((value, index) => ({ value, probability: given[index] ?? 0 }));
      const { confidence } = answer;
      return { type: 'choice', name, choice: values[largest(given).index] ?? '', confidence, probabilities };
    }
    case 'score': {
      const given = answer.probabilities.values;
      const probabilities = labels.map((label, value) => ({ label, value, probability: given[value] ?? 0 }));
      return { type: 'score', name, score: answer.score, confidence: answer.confidence, probabilities };
    }
    case undefined:
      throw new RangeError('a question has no answer');
  }
}
