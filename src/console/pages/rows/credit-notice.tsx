import { Notice } from '../components/notice.tsx';
import { formatMoneyShort } from '../format.ts';
import type { Setup } from '../playground/asking-setup.ts';
import type { RowsPrice } from './use-rows-price.ts';

/** A warning where the organization's credit does not reach for all rows. */
export function CreditNotice({
  setup: { available_micros },
  price,
}: {
  readonly setup: Pick<Setup, 'available_micros'>;
  readonly price: RowsPrice | undefined;
}) {
  if (price === undefined || price.cost_micros <= available_micros) return null;
  return (
    <Notice tone="warning" title="The credit may not be enough for all rows.">
      {formatMoneyShort(available_micros)} is available. A run that stops for it goes on after a top-up.
    </Notice>
  );
}
