import type { Command } from 'commander';

/** `tds decide` */
export function registerDecide(_program: Command): void {
  // Filled in with the service.
}
