import type { Command } from 'commander';

/** `tds serve` */
export function registerServe(_program: Command): void {
  // Filled in with the service.
}
