import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFileSync, existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/engine.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { firstAsProcess, initializeData, tds, textField } from './support.ts';

/** Each fault of an added model's files gets one sentence with advice, from tds doctor and in the log. */

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const root = temporaryDirectory();
const data = join(root.path, 'data');
const good = join(root.path, 'good.gguf');
const weights = join(root.path, 'added', 'added.gguf');
const calibration = join(dirname(weights), 'calibration.json');
let sha256: string;
let key: string;
const { command } = firstAsProcess();

beforeAll(async () => {
  await writeTinyModel(good, TINY_MARKERS);
  mkdirSync(dirname(weights));
  copyFileSync(good, weights);
  ({ sha256 } = await verifyWeights(weights));
  key = textField(await initializeData(data), 'key');
  await addModel('decision-2', weights);
});
afterEach(() => {
  rmSync(calibration, { force: true });
  copyFileSync(good, weights);
});
afterAll(() => root.remove());

async function addModel(id: string, path: string): Promise<void> {
  const words = ['--weights', path, '--price', '1', '--gpu', 'none', '--threads', '1', '--data', data];
  expect(await tds(['model', 'add', id, ...words])).toMatchObject({ code: 0 });
}

/** Resolves with the findings of tds doctor on the added model, and its exit code. */
async function doctor(): Promise<{ readonly code: number; readonly found: unknown }> {
  const { code, stdout } = await command([
    ...['doctor', '--json', '--gpu', 'none', '--model', TINY_WEIGHTS, '--data', data],
  ]);
  const findings: unknown = JSON.parse(stdout);
  const of_model = (one: { readonly subject?: unknown }) => one.subject === 'weights of decision-2';
  return { code, found: Array.isArray(findings) ? findings.find(of_model) : undefined };
}

const broken = (detail: string) => ({
  code: 1,
  found: { subject: 'weights of decision-2', state: 'broken', detail },
});

describe('tds doctor looks at the weights of an added model', () => {
  test('and finds them as they were added; with a model that is closed nothing is broken', async () => {
    const detail = `${weights}, SHA-256 ${sha256}`;
    expect(await doctor()).toEqual({
      code: 0,
      found: { subject: 'weights of decision-2', state: 'ok', detail },
    });
    rmSync(weights);
    await command(['model', 'close', 'decision-2', '--data', data]);
    expect(await doctor()).toMatchObject({ code: 0, found: { state: 'warning' } });
    await command(['model', 'open', 'decision-2', '--data', data]);
  });

  test('missing', async () => {
    rmSync(weights);
    expect(await doctor()).toEqual(
      broken(`The weights file ${weights} is missing: check the path, or copy or download it again.`),
    );
  });

  test('cut, with checksums beside them and without', async () => {
    truncateSync(weights, 60_000);
    const cut = (await verifyWeights(weights)).sha256;
    expect(await doctor()).toEqual(
      broken(
        `The weights ${weights} are others than when the model was added (SHA-256 ${cut}, not ${sha256}): put the file back, or take the new one by "tds model reload".`,
      ),
    );
    const sums = join(dirname(weights), 'SHA256SUMS');
    writeFileSync(sums, `${sha256}  added.gguf\n`);
    const found = await doctor();
    rmSync(sums);
    expect(found).toEqual(
      broken(
        `The weights file ${weights} is cut or corrupt (its SHA-256 is not the one in SHA256SUMS): copy or download it again.`,
      ),
    );
  });

  test('no model at all', async () => {
    writeFileSync(weights, 'a text'.repeat(10));
    expect(await doctor()).toEqual(
      broken(`${weights} is not a GGUF file: give a model in GGUF format, or copy or download it again.`),
    );
  });

  test('beside a calibration of other weights', async () => {
    const of_embedded = join(dirname(EMBEDDED_WEIGHTS), 'calibration.json');
    expect(existsSync(of_embedded)).toBe(true);
    copyFileSync(of_embedded, calibration);
    const { code, found } = await doctor();
    expect(code).toBe(1);
    expect(found).toMatchObject({
      state: 'broken',
      detail: expect.stringMatching(
        /^The calibration \S+calibration\.json (was fitted on other weights|is for the profile \S+ and not \S+): fit it again, remove it, or rename it to NAME\.calibration\.json where it is that of other weights NAME\.gguf beside it\.$/,
      ),
    });
  });
});

test('a server starts for the others of such models, and its log has the same sentences', async () => {
  const second = join(root.path, 'second.gguf');
  copyFileSync(good, second);
  await addModel('decision-3', second);
  rmSync(weights);
  truncateSync(second, 60_000);
  const server = await startChildServer(data, root.path);
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.endsWith('}') && line.includes('"step":"model_load"'));
  await eventually(() => lines().length === 2);
  const statuses = ['decision-1', 'decision-2', 'decision-3'].map(async (model) => {
    const body = JSON.stringify({ ...SMALL_REQUEST, model });
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`${server.address}/v1/decisions`, { method: 'POST', headers, body })).status;
  });
  expect(await Promise.all(statuses)).toEqual([200, 502, 502]);
  expect(await server.stop()).toBe(0);
  const lineOf = (id: string) => lines().find((line) => line.includes(`"model":"${id}"`));
  expect(lineOf('decision-2')).toContain(
    `The weights file ${weights} is missing: check the path, or copy or download it again.`,
  );
  expect(lineOf('decision-3')).toContain('put the file back, or take the new one by \\"tds model reload\\".');
});
