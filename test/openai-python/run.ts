import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rateLimited } from '../clients/support.ts';
import { MovableClock } from '../support/clock.ts';
import { installPythonProgram, PythonMissing } from '../support/python-program.ts';
import { addAccount, startTestService } from '../support/service.ts';

/**
 * Runs OpenAI's Python client against a live service (`client.py`): answers, errors, and a retry after a 429. It gets an
 * environment of its own in a temporary folder, and where that cannot be made the run is skipped.
 */

const PACKAGES = ['openai==3.57.0'];

async function run(directory: string): Promise<number> {
  const python = await installPythonProgram(directory, 'python', PACKAGES);
  const service = await startTestService({ embedded: true, clock: MovableClock.stopped() });
  const { key } = await addAccount(service);
  const { account, watched } = await rateLimited(service);
  // Between client and service stands what moves the clock once the client was refused.
  const between = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    reusePort: false,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const body = await request.arrayBuffer();
      const { method, headers } = request;
      return watched.fetch(`${service.server.address}${pathname}${search}`, { method, headers, body });
    },
  });
  try {
    const client = join(import.meta.dir, 'client.py');
    const base_url = `http://127.0.0.1:${between.port}/v1`;
    const child = Bun.spawn([python, client, base_url, key, account.key], {
      stdout: 'inherit',
      stderr: 'inherit',
    });
    const code = await child.exited;
    const statuses = watched.statuses.join(', ');
    console.log(`OpenAI's Python client saw ${statuses} and ended with ${code}.`);
    return code === 0 && statuses === '200, 422, 429, 200' ? 0 : 1;
  } finally {
    await between.stop(true);
    await service.close();
  }
}

const directory = mkdtempSync(join(tmpdir(), 'tds-openai-python-'));
let code = 1;
try {
  code = await run(directory);
} catch (error) {
  if (!(error instanceof PythonMissing)) throw error;
  console.log(`OpenAI's Python client was skipped: ${error.message}`);
  code = 0;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);
