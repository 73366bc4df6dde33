import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { installPythonProgram, PythonMissing } from '../support/python-program.ts';
import { addAccount, startTestService } from '../support/service.ts';
import { NOT_APPLICABLE, UNMET } from './expected.ts';

/**
 * Runs jevcompat, the conformance suite of the open decision-request format, with the official Python SDK, against a
 * live service. It gets an environment of its own in a temporary folder, and where that cannot be made the run is
 * skipped. Every MUST has to hold, and every SHOULD but those of `expected.ts`, which have to fail.
 */

/** With zstd the SDK compresses every body of 1,024 bytes and more. */
const PACKAGES = ['jevcompat==0.1.1', 'typesafe-sdk[zstd]==0.7.5'];

const MODEL = 'decision-1';

const Report = Type.Object({
  results: Type.Array(Type.Object({ id: Type.String(), level: Type.String(), status: Type.String() })),
  summary: Type.Object({ conformant: Type.Boolean(), verdict: Type.String() }),
});

async function run(directory: string): Promise<boolean> {
  const jevcompat = await installPythonProgram(directory, 'jevcompat', PACKAGES);
  const service = await startTestService({ embedded: true });
  try {
    const account = await addAccount(service, { tier: 5 });
    const limits = { requests_per_minute: 1e9, tokens_per_minute: 1e12 };
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, limits);
    const report = join(directory, 'report.json');
    await exitCodeOf([
      jevcompat,
      'test',
      service.server.address,
      `--key=${account.key}`,
      `--model=${MODEL}`,
      `--json=${report}`,
    ]);
    return isAsExpected(await Bun.file(report).json());
  } finally {
    await service.close();
  }
}

async function exitCodeOf(command: readonly string[]): Promise<number> {
  const child = Bun.spawn([...command], { stdout: 'inherit', stderr: 'inherit' });
  return await child.exited;
}

/** Prints what is other than expected; whether nothing is. */
function isAsExpected(document: unknown): boolean {
  if (!Value.Check(Report, document)) throw new Error('jevcompat wrote no report that can be read');
  const { results, summary } = document;
  const ids = new Set(results.map(({ id }) => id));
  const wrong = [
    ...results
      .filter((result) => result.status !== expectedStatus(result))
      .map((result) => `${result.level} ${result.id}: ${result.status}, not ${expectedStatus(result)}`),
    ...Object.keys(UNMET)
      .filter((id) => !ids.has(id))
      .map((id) => `${id} is no requirement`),
    ...(summary.conformant ? [] : [`the verdict is "${summary.verdict}"`]),
  ];
  for (const line of wrong) console.error(`Not as expected: ${line}`);
  if (wrong.length === 0) printUnmet();
  return wrong.length === 0;
}

function expectedStatus({ id, level }: Static<typeof Report>['results'][number]): string {
  if (NOT_APPLICABLE.includes(id)) return 'skip';
  return level === 'SHOULD' && id in UNMET ? 'fail' : 'pass';
}

function printUnmet(): void {
  console.log('\nAs expected. What is not met, and the rule of our specification that forbids it:');
  for (const [id, rule] of Object.entries(UNMET)) console.log(`  ${id.padEnd(24)} ${rule}`);
}

const directory = mkdtempSync(join(tmpdir(), 'tds-jevcompat-'));
let passed = false;
try {
  passed = await run(directory);
} catch (error) {
  if (!(error instanceof PythonMissing)) throw error;
  console.log(`jevcompat was skipped: ${error.message}`);
  passed = true;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(passed ? 0 : 1);
