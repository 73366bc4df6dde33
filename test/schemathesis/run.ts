import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { installPythonProgram, PythonMissing } from '../support/python-program.ts';
import { addAccount, startTestService } from '../support/service.ts';

/**
 * Runs Schemathesis, with all of its checks, against the OpenAPI document of a live service. It is a Python program and
 * gets an environment of its own in a temporary folder; where that cannot be made, the run is skipped. Arguments go to
 * Schemathesis (`--seed`, `--max-examples`).
 */

const SCHEMATHESIS = 'schemathesis==4.32.5';
const EXAMPLES = '50';

const directory = mkdtempSync(join(tmpdir(), 'tds-schemathesis-'));
let code = 1;
try {
  const schemathesis = await installPythonProgram(directory, 'schemathesis', [SCHEMATHESIS]);
  const service = await startTestService({ embedded: true });
  const account = await addAccount(service, { tier: 5 });
  const limits = { requests_per_minute: 1e9, tokens_per_minute: 1e12 };
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, limits);
  const child = Bun.spawn(
    [
      schemathesis,
      'run',
      `${service.server.address}/swagger/json`,
      '--checks=all',
      `--header=Authorization: Bearer ${account.key}`,
      `--max-examples=${EXAMPLES}`,
      '--request-timeout=120',
      // By default 10, which a long record takes on a machine that does other work too.
      '--max-response-time=120',
      '--suppress-health-check=all',
      ...process.argv.slice(2),
    ],
    {
      cwd: directory,
      env: { ...process.env, SCHEMATHESIS_HOOKS: join(import.meta.dir, 'hooks.py') },
      stdout: 'inherit',
      stderr: 'inherit',
    },
  );
  code = await child.exited;
  await service.close();
} catch (error) {
  if (!(error instanceof PythonMissing)) throw error;
  console.log(`Schemathesis was skipped: ${error.message}`);
  code = 0;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);
