import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { projectFile } from '../../src/files/project-root.ts';
import { closeAudited } from '../support/money.ts';
import { MAIN } from '../support/program.ts';
import {
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { shapeOf } from '../support/shape.ts';
import { SnippetRoom, SOURCES, snippetsOf } from './snippets.ts';

// A page has up to ten commands, each of which is a process that may load the model.
setDefaultTimeout(3 * MODEL_TEST_TIMEOUT_MS);

/** The settings of a reader's project. */
const TSCONFIG = {
  compilerOptions: {
    target: 'ESNext',
    module: 'Preserve',
    moduleResolution: 'bundler',
    lib: ['ESNext'],
    types: ['bun'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  },
  include: ['*.ts'],
};

let service: TestService;
let room: SnippetRoom;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  const { key } = await addRichlyLimited(service, 25_000_000);
  room = new SnippetRoom(service.server.address, { TDS_API_KEY: key });
  await room.write('bin/tds', `#!/bin/sh\nexec bun ${MAIN} "$@"\n`);
  await room.run(['chmod', '+x', 'bin/tds']);
});
afterAll(async () => {
  room[Symbol.dispose]();
  await closeAudited(service);
});

/** The programs that run snippets as a reader does. */
const PROGRAMS = { sh: ['bash', '-euo', 'pipefail'], ts: ['bun'] } as const;

describe.each(SOURCES.map((name) => [name] as const))('the snippets of %s', (name) => {
  test('run, and print what the document shows', async () => {
    for (const [index, snippet] of (await snippetsOf(name)).entries()) {
      const { language, output, code } = snippet;
      if (language === 'json') JSON.parse(code);
      if (language === 'json' || language === 'python') continue;
      const file = await room.write(`${name}-${index}.${language}`, room.codeOf(snippet));
      const { code: exit_code, stdout, stderr } = await room.run([...PROGRAMS[language], file]);
      expect([code, exit_code, exit_code === 0 ? '' : stderr]).toEqual([code, 0, '']);
      if (output === null) expect(stdout).not.toContain('"error"');
      else {
        expect([code, shapeOf(JSON.parse(stdout))]).toEqual([code, shapeOf(JSON.parse(output))]);
      }
    }
  });
});

test('the snippets in TypeScript have no error of types', async () => {
  using types = new SnippetRoom(service.server.address, {});
  await types.write('tsconfig.json', JSON.stringify(TSCONFIG));
  for (const name of SOURCES) {
    for (const [index, { language, code }] of (await snippetsOf(name)).entries()) {
      // Each is a module of its own.
      if (language === 'ts') await types.write(`${name}-${index}.ts`, `${code}\nexport {};\n`);
    }
  }
  const checkers = ['--checkers', '1'];
  const { stdout, code } = await types.run([projectFile('node_modules/.bin/tsc'), '-p', '.', ...checkers]);
  expect({ stdout, code }).toEqual({ stdout: '', code: 0 });
});
