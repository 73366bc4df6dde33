/** The sentences for the stored reasons of tier changes. */
export const TIER_REASONS: Readonly<Record<string, string>> = {
  top_up: 'because of a payment',
  refund: 'because of a refund',
  time: 'because enough time has passed since the first payment',
  operator: 'by a decision of the operator',
};
