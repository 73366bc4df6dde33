/** The hold has ended already, or there is no such hold. */
export class HoldNotOpen extends Error {
  override readonly name = 'HoldNotOpen';
}

/** The organization, or the project in it, does not exist. */
export class UnknownAccount extends Error {
  override readonly name = 'UnknownAccount';
}

/** A refund of more than was paid in all. */
export class RefundExceedsPayments extends Error {
  override readonly name = 'RefundExceedsPayments';
}
