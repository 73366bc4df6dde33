import type { Identifiers } from '../../contract/identifiers.ts';
import { type Clock, HOUR_MS } from '../../time/clock.ts';
import type { BetterAuth } from './better-auth.ts';

/** The hours for which the links of mails are valid. */
export const LINK_HOURS = { 'verify-email': 24, 'reset-password': 1 } as const;

/**
 * The purpose of a link. `reset-password` is better-auth's own name, because it checks these tokens itself.
 */
export type LinkPurpose = keyof typeof LINK_HOURS;

/** The id of no user. */
export const NOBODY = 'user_none';

/** The tokens of mailed links: each can be used once, for one purpose, until it expires. Stored as hashes. */
export class LinkTokens {
  constructor(
    private readonly auth: Pick<BetterAuth, '$context'>,
    private readonly parts: {
      readonly clock: Pick<Clock, 'now_ms'>;
      readonly identifiers: Pick<Identifiers, 'linkToken'>;
    },
  ) {}

  /**
   * Creates a token of a user. With null it belongs to nobody and has already expired. The database does the
   * same work for both, so that its time does not reveal the existence of a user. Deletes expired tokens.
   */
  async issue(purpose: LinkPurpose, user_id: string | null): Promise<string> {
    const { internalAdapter } = await this.auth.$context;
    const token = this.parts.identifiers.linkToken();
    const now_ms = this.parts.clock.now_ms();
    await this.endExpired();
    await internalAdapter.createVerificationValue({
      identifier: identifierOf(purpose, token),
      value: user_id ?? NOBODY,
      expiresAt: new Date(user_id === null ? now_ms : now_ms + LINK_HOURS[purpose] * HOUR_MS),
    });
    return token;
  }

  /** Deletes expired tokens. */
  async endExpired(): Promise<void> {
    const { adapter } = await this.auth.$context;
    const now = new Date(this.parts.clock.now_ms());
    await adapter.deleteMany({
      model: 'verification',
      where: [{ field: 'expiresAt', value: now, operator: 'lte' }],
    });
  }

  /**
   * Returns the id of a token's user, without using it up; null when it was used, has expired, or never
   * existed.
   */
  async find(purpose: LinkPurpose, token: string): Promise<string | null> {
    const { internalAdapter } = await this.auth.$context;
    const found = await internalAdapter.findVerificationValue(identifierOf(purpose, token));
    return found === null || found.expiresAt.getTime() <= this.parts.clock.now_ms() ? null : found.value;
  }

  /** Uses a token up and returns the id of its user; null when it was used, has expired, or never existed. */
  async take(purpose: LinkPurpose, token: string): Promise<string | null> {
    const { internalAdapter } = await this.auth.$context;
    return (await internalAdapter.consumeVerificationValue(identifierOf(purpose, token)))?.value ?? null;
  }

  /** Ends all tokens of a user. */
  async endAll(user_id: string): Promise<void> {
    const { adapter } = await this.auth.$context;
    await adapter.deleteMany({ model: 'verification', where: [{ field: 'value', value: user_id }] });
  }
}

function identifierOf(purpose: LinkPurpose, token: string): string {
  return `${purpose}:${token}`;
}
