import type { Command } from 'commander';
import { type LicensedPart, licenses } from '../program/licenses.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { printJson, printLine } from './output.ts';

/** Adds `tds licenses`. */
export function registerLicenses(program: Command): void {
  jsonCommand(
    program,
    {
      usage: 'licenses',
      description: 'print the licenses of everything that this program contains',
      example: 'tds licenses | less',
    },
    ['data'],
  ).action(({ json }: Pick<JsonOptions, 'json'>) => {
    const parts = licenses();
    if (json) printJson(parts);
    else print(parts);
  });
}

/** Prints every text once, below the names of all parts under it. */
function print(parts: readonly LicensedPart[]): void {
  for (const [text, owners] of Map.groupBy(parts, (part) => part.text)) {
    for (const { name, license } of owners) printLine(`==== ${name} (${license})`);
    printLine(`\n${text}\n`);
  }
}
