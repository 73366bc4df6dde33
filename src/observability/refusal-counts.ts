import { HOUR_MS } from '../time/clock.ts';

/** The hours of which refusals are counted, the present one included. */
export const REFUSAL_HOURS = 24;

/** The refusals of an organization with one code. */
export interface CountedRefusals {
  readonly code: string;
  readonly requests: number;
  readonly last_at_ms: number;
}

interface Count {
  requests: number;
  last_at_ms: number;
}

/**
 * The refused requests of each organization in the last hours, by code. Most of them leave no usage row, because they
 * got no hold. Only valid keys count, so that strangers fill no memory. Counts begin with the process.
 */
export class RefusalCounts {
  /** By hour, by organization, by code; hours that are over are dropped whole. */
  readonly #hours = new Map<number, Map<string, Map<string, Count>>>();

  /** Counts one refused request. */
  add(organization_id: string, code: string, now_ms: number): void {
    const hour = Math.floor(now_ms / HOUR_MS);
    const organizations = this.#hours.get(hour) ?? new Map<string, Map<string, Count>>();
    if (organizations.size === 0) this.#begin(hour, organizations);
    const codes = organizations.get(organization_id) ?? new Map<string, Count>();
    organizations.set(organization_id, codes);
    const count = codes.get(code) ?? { requests: 0, last_at_ms: 0 };
    codes.set(code, count);
    count.requests += 1;
    count.last_at_ms = Math.max(count.last_at_ms, now_ms);
  }

  /** Returns the refusals of an organization in the last hours, the most frequent code first. */
  of(organization_id: string, now_ms: number): CountedRefusals[] {
    const sums = new Map<string, Count>();
    for (const [hour, organizations] of this.#hours) {
      if (isOver(hour, now_ms)) continue;
      for (const [code, { requests, last_at_ms }] of organizations.get(organization_id) ?? []) {
        const sum = sums.get(code) ?? { requests: 0, last_at_ms: 0 };
        sums.set(code, {
          requests: sum.requests + requests,
          last_at_ms: Math.max(sum.last_at_ms, last_at_ms),
        });
      }
    }
    return [...sums]
      .map(([code, count]) => ({ code, ...count }))
      .sort((left, right) => right.requests - left.requests || (left.code < right.code ? -1 : 1));
  }

  #begin(hour: number, organizations: Map<string, Map<string, Count>>): void {
    for (const known of this.#hours.keys()) if (known <= hour - REFUSAL_HOURS) this.#hours.delete(known);
    this.#hours.set(hour, organizations);
  }
}

function isOver(hour: number, now_ms: number): boolean {
  return hour <= Math.floor(now_ms / HOUR_MS) - REFUSAL_HOURS;
}
