import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { expectError } from '../contract/expectations.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** Of `dist/browser/standalone.js` in the npm package `@scalar/api-reference` 1.72.1. */
const SCRIPT_SHA256 = 'bf091006bdc3af6067af77c2f534812e3e633e94a94e87138069f570f33b762c';

const PATHS = ['/swagger', '/swagger/', '/swagger/json', '/swagger/scalar.js'];

describe('the API reference', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => service.close());

  test('its script is the published one, byte for byte', async () => {
    const response = await service.fetch('/swagger/scalar.js');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('text/javascript');
    const script = await response.arrayBuffer();
    expect(new Bun.CryptoHasher('sha256').update(script).digest('hex')).toBe(SCRIPT_SHA256);
  });

  test('no other page may show it in a frame, with or without a slash at its end', async () => {
    for (const path of ['/swagger', '/swagger/']) {
      const response = await service.fetch(path);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('/swagger/scalar.js');
      const directives = (response.headers.get('content-security-policy') ?? '').split('; ');
      expect(directives).toContain("frame-ancestors 'none'");
      expect(response.headers.get('x-frame-options')).toBe('DENY');
    }
  });
});

describe('the API reference, switched off', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true, api_reference: false });
  });
  afterAll(() => service.close());

  for (const path of PATHS) {
    test(`${path} is a path that does not exist, whatever the method`, async () => {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        await expectError(await service.fetch(path, { method }), 'not_found');
      }
    });
  }

  test('the rest of the service answers as ever', async () => {
    await expectError(await service.fetch('/v1/models'), 'missing_api_key');
  });
});
