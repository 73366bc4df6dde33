import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { TIERS } from '../../src/contract/tiers.ts';
import { DOCUMENTS, documentPath, EXAMPLE_ADDRESS } from '../../src/docs/documents.ts';
import { COMMON_CODES, ERRORS, type ErrorCode } from '../../src/errors/errors.ts';
import { createApp } from '../../src/http/app.ts';
import { routesOf } from '../../src/http/routes.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ cold: true });
});
afterAll(() => service.close());

const pageOf = async (path: string) => await (await service.fetch(path)).text();
const linksOf = (html: string) =>
  [...html.matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href]) => href ?? '');

/** A page of a service with other addresses and parts. */
async function pageOfSite(path: string, site: Partial<TestService['service']['services']['site']>) {
  const { services } = service.service;
  const app = createApp({ ...services, site: { ...services.site, ...site } });
  return await (await app.handle(new Request(`http://localhost${path}`), '203.0.113.9')).text();
}

describe.each(DOCUMENTS.map((name) => [documentPath(name)] as const))('%s', (path) => {
  test('is a page without inline scripts or styles, which no other page shows in a frame', async () => {
    const response = await service.fetch(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(await response.text()).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
  });

  test('links to nothing but pages and anchors that are there, and to every other document', async () => {
    const html = await pageOf(path);
    const links = new Set(linksOf(html));
    for (const name of DOCUMENTS) expect([...links]).toContain(documentPath(name));
    for (const href of links) {
      const [target = '', anchor] = href.split('#');
      const response = await service.fetch(target === '' ? path : target);
      expect([href, response.status]).toEqual([href, 200]);
      const linked = await response.text();
      if (anchor !== undefined) expect([href, linked.includes(`id="${anchor}"`)]).toEqual([href, true]);
    }
  });

  test('names the public address of the service, or else the one at which it listens', async () => {
    const address = 'https://tds.example.com';
    const [known, served] = await Promise.all([pageOfSite(path, { public_url: address }), pageOf(path)]);
    for (const page of [known, served]) expect(page).not.toContain(EXAMPLE_ADDRESS);
    expect(known).toBe(served.replaceAll(service.server.address, address));
  });
});

test('pages link to the parts that the service has', async () => {
  const with_all = linksOf(await pageOfSite('/docs', { has_console: true }));
  expect(with_all).toContain('/console');
  expect(with_all).toContain('/swagger');
  const with_none = linksOf(await pageOfSite('/docs', { has_reference: false }));
  expect(with_none).not.toContain('/console');
  expect(with_none).not.toContain('/swagger');
});

test('the address alone leads a browser to the documents and tells other clients the paths', async () => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const response = await service.fetch('/', { redirect: 'manual', headers: { accept } });
  expect([response.status, response.headers.get('location')]).toEqual([302, '/docs']);
  const page = await (await service.fetch('/', { headers: { accept } })).text();
  expect(page).toContain('<!doctype html>');
  const told = await service.fetch('/');
  expect([told.status, told.headers.get('x-request-id')]).toEqual([200, expect.stringMatching(/^req_/)]);
  expect(await told.json()).toEqual({
    name: 'Typed Decision Service',
    docs: '/docs',
    reference: '/swagger',
  });
});

/** The cells of the rows of a page's first table. */
async function rowsOf(path: string, after: string): Promise<readonly (readonly string[])[]> {
  const html = await pageOf(path);
  const table = html.slice(html.indexOf(`id="${after}"`)).match(/<tbody>(.*?)<\/tbody>/s)?.[1] ?? '';
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) => cell.replaceAll(/<[^>]+>/g, '')),
  );
}

test('the table of errors has every code that a client can get, with its status', async () => {
  const codes = routesOf(service.service.services)
    .filter(({ operation }) => operation !== null)
    .flatMap(({ refusals }) => refusals);
  const listed = [...new Set<ErrorCode>([...codes, ...COMMON_CODES, 'not_found', 'method_not_allowed'])];
  const rows = await rowsOf('/docs/errors', 'all-codes');
  expect(rows.map(([, code]) => code ?? '').sort()).toEqual([...listed].sort());
  for (const [status, code] of rows) {
    const found = Object.entries(ERRORS).find(([name]) => name === code)?.[1];
    expect([code, status?.split(' or ').includes(String(found?.status))]).toEqual([code, true]);
  }
  const retried = rows.filter(([, , , retry]) => retry === 'yes').map(([, code]) => code);
  expect(retried).toContain('rate_limit_exceeded');
  expect(retried).not.toContain('project_spend_limit');
});

test('the table of tiers has their limits', async () => {
  const rows = await rowsOf('/docs/limits', 'by-tier');
  const numbers = rows.map((row) => row.map((cell) => Number(cell.replaceAll(/[$,]/g, ''))));
  expect(
    numbers.map(([tier, , requests, tokens, questions, top_up]) => [
      tier,
      requests,
      tokens,
      questions,
      top_up,
    ]),
  ).toEqual(
    TIERS.map(({ tier, limits, top_up_max_micros }) => [
      tier,
      limits?.requests_per_minute ?? Number.NaN,
      limits?.tokens_per_minute ?? Number.NaN,
      limits?.questions_per_request ?? Number.NaN,
      top_up_max_micros / 1_000_000,
    ]),
  );
});
