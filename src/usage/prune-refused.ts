/** Usage and ledger that are wrong, or would be, are kept as they are. */
export class PruneRefused extends Error {
  override readonly name = 'PruneRefused';
}
