import { treaty } from '@elysiajs/eden';
import type { ConsoleApi } from '../api/api.ts';

/** The failure of a request of the page, in one shape for every cause. */
export class ApiError extends Error {
  constructor(
    /** The contract's code; `unreachable` for no response, `unreadable` for one that is not ours. */
    readonly code: string,
    message: string,
    /** The field at fault, where one is. */
    readonly param: string | null,
    readonly request_id: string | null,
    readonly status: number,
    /** Whole seconds after which a retry makes sense, where the service gives them. */
    readonly retry_after_s: number | null = null,
  ) {
    super(message);
  }
}

let csrf_token: string | null = null;

/** Sets the token for every change of this session; null when nobody is signed in. */
export function setCsrfToken(token: string | null): void {
  csrf_token = token;
}

/**
 * The console's API with the types of its schemas: `await call(api.session.get())`,
 * `await call(api.organizations({ organization_id }).keys.get({ query }))`.
 */
export const api = treaty<ConsoleApi>(location.origin, {
  // A text stays a text, even if it looks like a time.
  parseDate: false,
  fetch: { credentials: 'same-origin' },
  headers: () => (csrf_token === null ? {} : { 'x-csrf-token': csrf_token }),
}).console.api;

/** The routes of one organization. */
export type OfOrganization = ReturnType<typeof api.organizations>;

/** The body of a route's response: `AnswerOf<OfOrganization['keys']['get']>`. */
export type AnswerOf<Route extends (...given: never[]) => Promise<{ readonly data: unknown }>> = NonNullable<
  Awaited<ReturnType<Route>>['data']
>;

/** Eden's result: headers come with every response, and are undefined without one. */
type Answer<T> = { readonly headers: HeadersInit | undefined } & (
  | { readonly data: T; readonly error: null }
  | { readonly data: null; readonly error: { readonly status: unknown; readonly value: unknown } }
);

/**
 * Returns the body of a response of the API. Throws an `ApiError` for every other outcome. When the session
 * has ended the browser goes to the sign-in page, which returns here.
 */
export async function call<T>(answer: Promise<Answer<T>>): Promise<T> {
  return (await callWithHeaders(answer)).data;
}

/** Does the same, and also returns the response's headers. */
export async function callWithHeaders<T>(
  answer: Promise<Answer<T>>,
): Promise<{ readonly data: T; readonly headers: Headers }> {
  const { data, error, headers: sent } = await answer;
  const headers = new Headers(sent);
  if (error === null) return { data, headers };
  throw failureOf(Number(error.status), error.value, headers.get('retry-after'));
}

/** Does the same as `call` for a secret that is shown once: until it is here, the browser asks before it leaves the page. */
export async function callForSecret<T>(answer: Promise<Answer<T>>): Promise<T> {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  addEventListener('beforeunload', ask);
  // An ended session, by which the page is left, has no secret to lose.
  await answer.finally(() => removeEventListener('beforeunload', ask));
  return await call(answer);
}

/** A request of the page whose body and response are lines of JSON. */
interface LinesRequest {
  /** Below the API's own path, such as `organizations/…/batch/…`. */
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Yields the lines of a response as they come, those that have come together at once. Throws an `ApiError` for every
 * response that is not one, and where the connection breaks off.
 */
export async function* callForLines({
  path,
  body,
  headers,
  signal,
}: LinesRequest): AsyncGenerator<readonly string[]> {
  try {
    const token = csrf_token === null ? {} : { 'x-csrf-token': csrf_token };
    const sent = { 'content-type': 'application/x-ndjson', ...token, ...headers };
    const response = await fetch(`/console/api/${path}`, { method: 'POST', headers: sent, body, signal });
    if (!response.ok) {
      const value: unknown = await response.json().catch(() => null);
      throw failureOf(response.status, value, response.headers.get('retry-after'));
    }
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; reader !== undefined; ) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
  } catch (thrown) {
    throw thrown instanceof ApiError ? thrown : unreachable();
  }
}

/** Returns the failure of a response. The browser goes to the sign-in page when the session has ended. */
function failureOf(status: number, body: unknown, retry_after: string | null): ApiError {
  const failure = apiErrorOf(status, body, retry_after);
  if (failure.code === 'not_signed_in') {
    const here = location.pathname + location.search;
    // The document is loaded again, so that nothing of the ended session is left in it.
    location.assign(`/console/sign-in?return=${encodeURIComponent(here)}`);
  }
  return failure;
}

function unreachable(): ApiError {
  return new ApiError(
    'unreachable',
    'The service cannot be reached. Is this device online, and is the service running?',
    null,
    null,
    0,
  );
}

/** Returns anything that was thrown as an `ApiError`. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError('unexpected', message, null, null, 0);
}

function apiErrorOf(status: number, body: unknown, retry_after: string | null): ApiError {
  if (isErrorBody(body)) {
    const { code, message, param } = body.error;
    const retry_after_s = retry_after === null ? null : Number(retry_after);
    return new ApiError(code, message, param ?? null, body.request_id ?? null, status, retry_after_s);
  }
  // Eden gives 503 and the cause when there was no response at all.
  if (body instanceof Error) return unreachable();
  return new ApiError('unreadable', `The service answered with status ${status}.`, null, null, status);
}

interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly param?: string | null };
  readonly request_id?: string;
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false;
  const { error } = body;
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
}
