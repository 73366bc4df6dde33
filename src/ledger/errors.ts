/** The hold has ended already, or does not exist. */
export class HoldNotOpen extends Error {
  override readonly name = 'HoldNotOpen';
}

/** The organization, or the project in it, does not exist. */
export class UnknownAccount extends Error {
  override readonly name = 'UnknownAccount';
}

/** The refund is more than the total of payments. */
export class RefundExceedsPayments extends Error {
  override readonly name = 'RefundExceedsPayments';
}
