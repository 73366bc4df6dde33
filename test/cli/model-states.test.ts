import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { EMBEDDED_WEIGHTS, weightsBytes } from '../../native/engine.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { field, firstAsProcess } from './support.ts';

setDefaultTimeout(1.5 * MODEL_TEST_TIMEOUT_MS);

const { command, commandJson } = firstAsProcess();
let root: ReturnType<typeof temporaryDirectory>;
beforeAll(() => {
  root = temporaryDirectory();
});
afterAll(() => root.remove());

test('tds model list says the state and the memory of each model in the service that runs here', async () => {
  const data = join(root.path, 'data');
  const decision_1 = async () => {
    const models = await commandJson(['model', 'list', '--data', data]);
    return Array.isArray(models) ? models.find((model) => field(model, 'id') === 'decision-1') : undefined;
  };
  const server = await startChildServer(data, root.path, [], { embedded: true });
  await eventually(async () => field(await decision_1(), 'state') === 'ready');
  const loaded = await decision_1();
  expect(loaded).toMatchObject({ load_error: null });
  expect(Number(field(loaded, 'memory_bytes'))).toBeGreaterThanOrEqual(await weightsBytes(EMBEDDED_WEIGHTS));
  const { stdout } = await command(['model', 'list', '--data', data]);
  expect(stdout).toMatch(/^ID +KIND +STATUS +STATE +MEMORY MB +/);
  expect(stdout).toMatch(/^chat-1 +chat +coming_soon +- +- +/m);
  expect(stdout).toMatch(/^decision-1 +decision +live +ready +\d+ +/m);
  await server.stop();
  expect(await decision_1()).toMatchObject({ state: null, memory_bytes: null });
});
