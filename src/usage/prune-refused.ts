/** The error of a roll-up that stops, because usage and ledger are inconsistent, or would be. */
export class PruneRefused extends Error {
  override readonly name = 'PruneRefused';
}
