import { InvalidArgumentError } from 'commander';
import type { UpstreamPool } from '../catalog/catalog-records.ts';
import { UpstreamModel } from '../upstreams/upstream-model.ts';
import { CommandFailed } from './command-failed.ts';

/** A server may load its model at the first question. */
const WAITING_MS = 120_000;

/** The URL of an upstream without a slash at its end. Credentials belong into a file. */
export function upstreamAddress(text: string): string {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : null;
  const is_address =
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '';
  if (!is_address) {
    throw new InvalidArgumentError(
      'Give URLs such as http://10.0.0.2:8080, without a password, and without "?" or "#".',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** The URLs of a pool, each once. */
export function upstreamAddresses(text: string): readonly string[] {
  return [...new Set(text.split(',').map(upstreamAddress))];
}

/**
 * Asks each upstream a small question, as a server would. Says on standard error which does not answer. Throws
 * `CommandFailed` where none does.
 */
export async function checkUpstreams(id: string, upstreams: UpstreamPool): Promise<void> {
  const failures = await upstreamFailures(id, upstreams, WAITING_MS);
  for (const failure of failures) process.stderr.write(`${failure}\n`);
  if (failures.length === upstreams.addresses.length) {
    throw new CommandFailed(
      `No upstream of ${id} answers a small question. With --closed it is added all the same.`,
    );
  }
}

/** Why members of the pool do not answer a small question, a sentence for each that does not. */
export async function upstreamFailures(
  id: string,
  upstreams: UpstreamPool,
  waiting_ms: number,
): Promise<readonly string[]> {
  const failures = await Promise.all(
    upstreams.addresses.map((address) => failureOf(id, address, upstreams, waiting_ms)),
  );
  return failures.filter((failure) => failure !== null);
}

/** Why the upstream does not answer; null where it does. */
async function failureOf(
  id: string,
  address: string,
  upstreams: UpstreamPool,
  waiting_ms: number,
): Promise<string | null> {
  let problem: unknown;
  const model = new UpstreamModel(
    {
      id,
      context_tokens: 1,
      input_price_micros_per_million_tokens: 0,
      upstreams: { ...upstreams, addresses: [address] },
    },
    {
      now_ms: () => performance.now(),
      trial_ms: waiting_ms,
      onProblem: (error) => {
        problem = error;
      },
    },
  );
  try {
    await model.load();
    return null;
  } catch (error) {
    const reason = problem ?? error;
    return reason instanceof Error ? reason.message : String(reason);
  } finally {
    await model.close();
  }
}
