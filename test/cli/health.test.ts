import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { startChildServer } from '../support/child-server.ts';
import { MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectRefused, firstAsProcess, tds } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const { command } = firstAsProcess();

test('an address in the data directory that this user cannot read is not taken for no service', async () => {
  using root = temporaryDirectory();
  const path = join(root.path, 'service-url.txt');
  mkdirSync(path);
  expectRefused(
    await command(['health', '--data', root.path]),
    `${path} cannot be read (EISDIR): run this as the service's user, or name the address with --url.`,
  );
});

describe('of a service by its address', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => service.close());

  const health = (...flags: string[]) => command(['health', '--url', service.server.address, ...flags]);

  test('that is ready: one word and exit code 0', async () => {
    expect(await health()).toEqual({ code: 0, stdout: 'ready\n', stderr: '' });
    expect(await health('--live')).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
  });

  test('that runs beside a wrong file of settings: it answers, with a warning', async () => {
    using root = temporaryDirectory();
    const path = join(root.path, 'tds.toml');
    writeFileSync(path, '[serer]\n');
    expect(await health('--live', '--config', path)).toEqual({
      code: 0,
      stdout: 'ok\n',
      stderr: `tds: Line 1 of ${path}: there is no section [serer]; "tds config --example" shows all that there are. It is not used here.\n`,
    });
  });

  test('that no proxy of the environment can reach', async () => {
    const env = { HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' };
    const asked = await tds(['health', '--url', service.server.address], { env });
    expect(asked).toEqual({ code: 0, stdout: 'ready\n', stderr: '' });
  });

  test('that is not ready: what it lacks and exit code 1, but with --live it answers', async () => {
    service.service.services.readiness.drain();
    expectRefused(await health(), 'The service is not ready: draining.');
    expect(await health('--live')).toMatchObject({ code: 0, stdout: 'ok\n' });
  });

  test('that is another program, is nowhere, or is no address', async () => {
    using other = Bun.serve({ port: 0, fetch: () => new Response('hello') });
    const url = other.url.origin;
    expectRefused(await command(['health', '--url', url]), `${url}/readyz is not answered by this service.`);
    await other.stop(true);
    expectRefused(await command(['health', '--url', url]), `There is no answer from ${url}/readyz.`);
    expectRefused(
      await command(['health', '--url', 'tds.example']),
      'tds.example is no address: name one such as http://127.0.0.1:8080.',
    );
  });
});

describe('of the service that runs on a data directory', () => {
  const root = temporaryDirectory();
  afterAll(() => root.remove());

  test.skipIf(!hasOpenssl)(
    'at any port, on every address, behind a certificate that nobody vouches for',
    async () => {
      const data = join(root.path, 'data');
      const { certificate, key } = makeCertificate(root.path, 'public.example');
      const server = await startChildServer(data, root.path, [
        ...['--host', '0.0.0.0'],
        ...['--tls-cert', certificate, '--tls-key', key],
      ]);
      expect(await command(['health', '--data', data])).toEqual({ code: 0, stdout: 'ready\n', stderr: '' });
      await server.kill();
      const gone = await command(['health', '--data', data]);
      expect(gone.code).toBe(1);
      expect(gone.stderr).toStartWith('tds: There is no answer from https://0.0.0.0:');
    },
  );

  test('that has ended, or was never started: a sentence and exit code 1', async () => {
    const data = join(root.path, 'ended');
    const server = await startChildServer(data, root.path);
    expect(existsSync(join(data, 'service-url.txt'))).toBe(true);
    expect(await server.stop()).toBe(0);
    expectRefused(
      await command(['health', '--data', data]),
      `No service runs on ${data}: start it, or name its address with --url.`,
    );
  });
});
