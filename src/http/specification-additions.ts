import { ERROR_CODES, ERRORS, type ErrorCode } from '../errors/errors.ts';
import { IDEMPOTENCY_KEY_LENGTH_MAX } from '../idempotency/claim.ts';
import { NESTING_MAX } from '../json/read-json.ts';
import { ADDRESS_REFUSALS_PER_MINUTE, keyRefusalsPerMinute } from '../limits/refusal-budgets.ts';
import { KEPT_BYTES_MAX } from '../store/kept-answer.ts';
import { LINES_AT_ONCE, LINES_MAX } from './batch-stream.ts';
import { ACCEPTED_CODINGS } from './content-encoding.ts';

/** The text in the reference that marks additions to the contract. */
export const ADDITION = 'An addition to the specification.';

/** Returns true if the contract does not have the code. */
export function isAddedCode(code: ErrorCode): boolean {
  return 'is_addition' in ERRORS[code];
}

/** The notes on codes beyond their messages: other occasions, and their headers. */
export const CODE_NOTES: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid_api_key:
    'Also the answer to a key whose organization the operator has suspended; its message says so.',
  invalid_request: `Also the answer to a body that is nested deeper than ${NESTING_MAX} levels, whatever else is wrong with it. 400 for a request with images, also in a body of several parts, and 422 for an id of a question or an option that is there twice in one object.`,
  invalid_mode: 'Also the answer to a query with more than one `mode`, when the body has none.',
  model_not_found:
    'On `/v1/systemone` also the answer to a `model` that is no string or empty: only an absent one, or null, is the default.',
  request_timeout: 'The connection is closed.',
  rate_limit_exceeded: `Also the answer to whoever is only refused. An address without a valid key may have ${ADDRESS_REFUSALS_PER_MINUTE} refusals a minute, a key ${keyRefusalsPerMinute(0)} (more where its organization may ask more). With \`Retry-After\`.`,
  idempotency_key_in_use:
    'With `Retry-After`. Only after a wait for the other request that was as long as a client waits.',
  model_unavailable: 'With `Retry-After` when too many requests wait for the model; otherwise without.',
  model_warming_up: 'With `Retry-After`.',
  overloaded: 'With `Retry-After`.',
};

/** All additions, as text of the reference. */
export const ADDITIONS = `- Codes: ${ERROR_CODES.filter(isAddedCode)
  .map((code) => `\`${code}\``)
  .join(', ')}. A 405 carries \`Allow\`.
- A body may come with a \`Content-Encoding\` of ${ACCEPTED_CODINGS}, one of them. The limit of 1 MB holds for what is sent and for what it becomes. Any other is 415 \`unsupported_encoding\` with \`Accept-Encoding\`.
- \`x-ratelimit-reset-tokens\` beside the other token headers: the time until the oldest tokens leave the window.
- \`Retry-After\` also on a 502 \`model_unavailable\` that is due to too many waiting requests, and on a 503 \`overloaded\`.
- 429 \`rate_limit_exceeded\` also for clients that are only refused. ${ADDRESS_REFUSALS_PER_MINUTE} refusals a minute are answered to an address without a valid key. A key has ${keyRefusalsPerMinute(0)}, or twice the requests per minute of its organization where that is more. Requests with a valid key are not held against their address.
- \`Idempotency-Key\` (1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters) on \`POST /v1/decisions\` and \`POST /v1/systemone\`: all requests of one API key with the same value and the same path, query and JSON body within 24 hours are one decision, which is charged once. A repeated one gets the same body with \`idempotent-replayed: true\`, whatever became of price, model, mode, tier limits or credit meanwhile. While the first is being answered, the others wait for it. With another body it is 409 \`idempotency_key_reused\`. What is refused is not kept: the next attempt runs. A replay needs a valid key and counts as one request of the minute, with no tokens; it leaves no usage row, and carries the \`x-ratelimit-*\` headers. The service keeps keyed hashes and the numbers of the answer, never what was sent; above ${KEPT_BYTES_MAX / 1_048_576} MiB an organization the oldest go first. Without the header nothing changes: a retried request is a fresh decision.
- 429 \`api_key_spend_limit\` where a key has a monthly limit of its own and has reached it. It is checked after the limit of the project and before the credit, counts by UTC month what the key and those that it replaced in rotations were charged, and has the headers of \`project_spend_limit\`.
- \`x-should-retry: false\` on a 409 or 429 that the same request gets again, because SDKs retry these statuses: with \`idempotency_key_reused\`, \`project_spend_limit\` and \`api_key_spend_limit\`.
- 401 \`invalid_api_key\` also for a key whose organization the operator has suspended: within 60 seconds, and until the suspension is lifted.
- 422 \`invalid_request\` for a body that is nested deeper than ${NESTING_MAX} levels, and for an id of a question or an option that is there twice in one object.
- 400 \`invalid_request\` for images: \`assets\`, parts such as \`{"type": "image", "image": …}\` in a list, and multipart bodies. This model reads text only.
- \`tds-ignored-fields\` on responses that reached the model, on replays, and on counts of \`POST /v1/tokens\`: fields of the request, its questions and the criteria of a noul that nothing read, at most 8 names, percent-encoded, each cut at 64 characters.
- \`tds-record-tokens-left-out\` on responses that reached the model, and on replays, where a record was too long: how many tokens of its middle the question with the least room does not see. It is an estimate for a record of several times the context. For models behind upstreams that make their own plans it is the most that one call of the request says, and absent where none says it.
- \`POST /v1/tokens\` takes the body of \`POST /v1/decisions\`, and says what it would read and cost. It runs no model, is free of charge, leaves no usage row and counts in no rate limit. It is refused for what a decision is refused for before its rate limits, and each counts as a refusal of the key.
- A request that the model rejects has a usage row with its status, 0 questions and no cost: 10,000 a day of an organization, and as many once more at first.
- In the model list \`created\`, the Unix seconds of a model's release, \`context_tokens\`, \`price\` in dollars for 1M tokens, \`modes\` and \`limits\`, which are those of the organization whose key asks. \`GET /v1/models/{id}\` shows one model, also by an alias; 404 \`model_not_found\` for any other id.
- \`jev-latest\`, which SDKs of the open decision-request format ask for, is an alias of \`decision-1\` unless the operator took it away. \`x-typesafe-request-id\` on responses of \`/v1/systemone\` and \`/v1/models\` is a copy of \`x-request-id\`.
- \`usage.output_tokens\`, always 0, and \`models\` in the model list, for clients of the open decision-request format.
- \`POST /v1/decisions\` also takes OpenAI's shape (\`client.decisions.create\` of the \`openai\` packages): a body with \`input\` and no \`state\`, whose \`questions\` are a list. It costs and answers what the same record and questions do in the contract's shape: \`probability\` of a predicate is the \`noul\`, the \`value\` of a level its index from 0. A choice or a score may have no \`instructions\`. Levels are read as \`label: description\`, or as the description where all labels are their indexes. \`mode\` comes from the query. One message of a user is read as its text; other lists keep roles and order. Other fields of that shape are taken and ignored, and \`tds-ignored-fields\` names them.
- \`POST /v1/decisions/batch\` takes up to ${LINES_MAX.toLocaleString('en-US')} lines of JSON (NDJSON), each with a \`state\`, and perhaps an \`id\`, \`questions\`, \`mode\` and \`model\`. What a line has not of the last three is that of the first line, which may be a header without a \`state\`. Each line is a request of its own, with its hold, charge, usage row and request id, and is answered on a line in the order of completion: its \`id\`, the number of its \`line\`, and the answer (with \`decision_id\`) or an \`error\`. The status is 200 once the first line is read; a mistake before that, or in a header, is an ordinary error. Rate limits, of which a tenth is left to single requests, a model without room and a model that warms up make lines wait. A key that is revoked, credit that is used up, a spend limit, a stop of the service, a body that breaks off and the last line above the maximum end the batch: its last line then has no \`id\`, and names the \`line\` to go on with, beside earlier lines with an error. A client that goes away ends it too: lines that wait are not charged, and at most ${LINES_AT_ONCE} that were being answered are. Reading follows the client: who does not read the response is not read from. With an \`Idempotency-Key\`, lines of the same value, \`id\` and content within 24 hours are one decision, which is charged once; a repeated one has \`replayed\`. A line without an \`id\` is charged each time. \`ignored_fields\` and \`record_tokens_left_out\` of a line say what the headers of a single request do. An organization has four batches at once.
- \`POST /mcp\`: the Model Context Protocol for agents, with the API key as bearer. Its tools are \`decide\`, billed as \`POST /v1/decisions\`, \`list_models\` and \`usage\`, what the project of the key has used.
- A \`state\` may be an array. One of nothing but parts, \`{"type": "text", "text": "…"}\` and \`{"type": "json", "value": …}\`, each perhaps with \`providerOptions\`, is read as the contents: adjacent texts joined by a line break, one content alone as the record, and several as a list. A \`model\` on \`/v1/systemone\`, a \`mode\` and the criteria of a noul may be null, which is the same as absent. A level of a score may be null, and is the empty string in the \`legend\`.

API keys belong on servers: no CORS headers are sent, and a browser's preflight is a method that no path takes.`;
