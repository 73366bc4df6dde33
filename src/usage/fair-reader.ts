import { FairScheduler } from '../scheduling/fair-scheduler.ts';
import type { MovementPage, MovementQuestion, MovementReader } from '../store/movement-reader.ts';
import type {
  KeySpend,
  SeriesQuestion,
  UsageReader,
  UsageSeries,
  UsageSpan,
  UsageValues,
} from '../store/usage-reader.ts';
import type { NamedUsageRow, UsageFilter, UsagePlace } from '../store/usage-records.ts';

/** The longest read: longer than any chart of one organization needs, and short for those who wait. */
export const READ_MS_MAX = 20_000;

/** The error of a read that was ended because it took longer. */
export class ReadTookTooLong extends Error {
  override readonly name = 'ReadTookTooLong';

  constructor() {
    super('A read of usage took too long.');
  }
}

/** The name for the operator's reads of all organizations. */
const OF_ALL = '';

/**
 * Limits the concurrent reads, to one for each organization, so that its members delay no other
 * organization's reads.
 */
export class FairReader implements UsageReader, MovementReader {
  readonly #scheduler: FairScheduler;

  constructor(
    private readonly usage: UsageReader,
    private readonly movements: MovementReader,
    reads_at_once: number,
  ) {
    this.#scheduler = new FairScheduler(reads_at_once);
  }

  page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    return this.#scheduled(filter, () => this.usage.page(filter, limit, after));
  }

  series(question: SeriesQuestion): Promise<UsageSeries> {
    return this.#scheduled(question, () => this.usage.series(question));
  }

  values(span: UsageSpan): Promise<UsageValues> {
    return this.#scheduled(span, () => this.usage.values(span));
  }

  spendByKey(organization_id: string, from_ms: number): Promise<readonly KeySpend[]> {
    return this.#scheduled({ organization_id }, () => this.usage.spendByKey(organization_id, from_ms));
  }

  firstAnswer_ms(organization_id: string): Promise<number | undefined> {
    return this.#scheduled({ organization_id }, () => this.usage.firstAnswer_ms(organization_id));
  }

  movementLines(question: MovementQuestion): Promise<MovementPage> {
    return this.#scheduled(question, () => this.movements.movementLines(question));
  }

  #scheduled<T>(
    { organization_id }: { readonly organization_id: string | null },
    read: () => Promise<T>,
  ): Promise<T> {
    return this.#scheduler.run(organization_id ?? OF_ALL, read);
  }
}
