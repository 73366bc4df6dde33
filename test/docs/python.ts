import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPythonProgram, PythonMissing } from '../support/python-program.ts';
import { addRichlyLimited, startTestService } from '../support/service.ts';
import { SnippetRoom, SOURCES, snippetsOf } from './snippets.ts';

/**
 * Runs every snippet in Python of the documents against a live service, as a reader would. The packages get an
 * environment of their own in a temporary folder, and where that cannot be made the run is skipped.
 */

const PACKAGES = ['openai==3.54.0', 'typesafe-sdk==0.7.5'];

/** The number of snippets that failed. */
async function run(directory: string): Promise<number> {
  const python = await installPythonProgram(directory, 'python', PACKAGES);
  const service = await startTestService({ embedded: true });
  const { key } = await addRichlyLimited(service, 25_000_000);
  using room = new SnippetRoom(service.server.address, { TDS_API_KEY: key });
  let failed = 0;
  try {
    for (const name of SOURCES) {
      for (const snippet of (await snippetsOf(name)).filter(({ language }) => language === 'python')) {
        const file = await room.write('snippet.py', room.codeOf(snippet));
        const { code, stdout, stderr } = await room.run([python, file]);
        console.log(`${name}: ${code === 0 ? stdout.trim() : `${snippet.code}\n${stderr}`}`);
        if (code !== 0) failed += 1;
      }
    }
  } finally {
    await service.close();
  }
  return failed;
}

const directory = mkdtempSync(join(tmpdir(), 'tds-docs-python-'));
let code = 1;
try {
  code = (await run(directory)) === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof PythonMissing)) throw error;
  console.log(`The documents' snippets in Python were skipped: ${error.message}`);
  code = 0;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);
