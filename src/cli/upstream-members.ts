import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { wholeNumberBetween } from '../config/setting.ts';
import type { UpstreamMember, UpstreamPool } from '../store/catalog-records.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import { MS_PER_S } from '../time/clock.ts';

const WEIGHT_MAX = 100;
/** No client waits longer for an answer. */
const TIMEOUT_MAX_S = CLIENT_TIMEOUT_MS / MS_PER_S;

/** The addresses of a pool, each once, with the settings of some of them. */
export type GivenMembers = Required<Pick<UpstreamPool, 'addresses' | 'members'>>;

/** Parses whole seconds for a member's answer into milliseconds. */
export function answerTimeout(text: string): number {
  return wholeNumberBetween(1, TIMEOUT_MAX_S)(text) * MS_PER_S;
}

/** The attributes that can follow an address, by name. */
const ATTRIBUTES = new Map<string, (text: string) => UpstreamMember>([
  ['weight', (text) => ({ weight: wholeNumberBetween(1, WEIGHT_MAX)(text) })],
  ['timeout', (text) => ({ answer_ms: answerTimeout(text) })],
  ['token-file', (text) => ({ token_file: resolve(text) })],
]);

/** Returns the URL of an upstream without a trailing slash. Credentials belong in a file. */
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

/**
 * Parses URLs separated by commas, each followed by its attributes: `http://a:8080,weight=2,http://b:8080`.
 */
export function upstreamMembers(text: string): GivenMembers {
  const members = new Map<string, UpstreamMember>();
  let address: string | undefined;
  for (const piece of text.split(',')) {
    const [, name, value] = /^([a-z-]+)=(.*)$/s.exec(piece.trim()) ?? [];
    if (name === undefined || value === undefined || address === undefined) {
      address = upstreamAddress(piece);
      members.set(address, members.get(address) ?? {});
      continue;
    }
    members.set(address, { ...members.get(address), ...attribute(name, value) });
  }
  return {
    addresses: [...members.keys()],
    members: Object.fromEntries([...members].filter(([, member]) => Object.keys(member).length > 0)),
  };
}

function attribute(name: string, value: string): UpstreamMember {
  const parse = ATTRIBUTES.get(name);
  if (parse === undefined || value === '') {
    throw new InvalidArgumentError(
      `Behind an address stand ${[...ATTRIBUTES.keys()].map((known) => `${known}=…`).join(', ')}; a token stands in a file.`,
    );
  }
  return parse(value);
}
