import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { COMMON_CODES, ERRORS, Refusal } from '../../src/errors/errors.ts';
import { PathTable, pathParameter } from '../../src/http/path-table.ts';
import { defineRoute, type Method, type Route } from '../../src/http/route.ts';
import { routesOf } from '../../src/http/routes.ts';
import { createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { expectError } from '../contract/expectations.ts';
import { SETTINGS } from '../payments/paddle-calls.ts';
import { asResponse, parseRaw, sendRaw } from '../support/raw-http.ts';
import { addAccount, startTestService, type TestService } from '../support/service.ts';

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

function routeOf(method: Method, path: string, is_served = true): Route {
  return defineRoute({
    method,
    path,
    refusals: [],
    operation: null,
    handle: is_served ? () => new Response() : null,
  });
}

describe('the paths of a list of routes', () => {
  test('Allow has every method of a path, and HEAD beside GET', () => {
    const paths = new PathTable([routeOf('GET', '/a'), routeOf('POST', '/b'), routeOf('POST', '/a')]);
    expect(paths.find('/a')?.allow).toBe('GET, HEAD, POST');
    expect(paths.find('/b')?.allow).toBe('POST');
    expect(paths.find('/c')).toBeNull();
  });

  test('a slash at the end means the same path; two do not', () => {
    const paths = new PathTable([routeOf('GET', '/'), routeOf('GET', '/a')]);
    expect(paths.find('/a/')?.path).toBe('/a');
    expect(paths.find('/')?.path).toBe('/');
    expect(paths.find('/a//')).toBeNull();
  });

  test('a parameter stands for one segment; a path that is written out is found before it', () => {
    const paths = new PathTable([
      routeOf('GET', '/a/{id}'),
      routeOf('GET', '/a/b'),
      routeOf('GET', '/a/{id}/c'),
    ]);
    const found = (path: string) => paths.find(path)?.path;
    expect(['/a/x', '/a/x/', '/a/b', '/a/x/c', '/a/x%2Fy'].map(found)).toEqual([
      '/a/{id}',
      '/a/{id}',
      '/a/b',
      '/a/{id}/c',
      '/a/{id}',
    ]);
    expect(['/a', '/a/', '/a//', '/a/x/y', '/a/x//c'].map(found)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    const value = (path: string) => pathParameter('/a/{id}/c', new Request(`http://localhost${path}`));
    expect(['/a/x/c', '/a/x%2Fy/c', '/a/%E0%A4/c'].map(value)).toEqual(['x', 'x/y', null]);
  });

  test('a route that the service does without adds no method; a path of such routes only takes none', () => {
    const paths = new PathTable([
      routeOf('GET', '/a', false),
      routeOf('POST', '/a'),
      routeOf('GET', '/b', false),
    ]);
    expect(paths.find('/a')?.allow).toBe('POST');
    expect(paths.find('/b')).toEqual({ path: '/b', headers: {}, request_id_copy: null, allow: null });
  });

  test('two routes of one method and path, and a path that no request can mean, stop the start', () => {
    expect(() => new PathTable([routeOf('GET', '/a'), routeOf('GET', '/a')])).toThrow('/a');
    expect(() => new PathTable([routeOf('GET', '/a/')])).toThrow('/a/');
  });
});

test('a handler that refuses with a code that its route does not list does not compile', () => {
  const given = { method: 'GET', path: '/a', operation: null } as const;
  defineRoute({
    ...given,
    refusals: ['invalid_mode'],
    handle: () => ({ refusal: new Refusal('overloaded') }),
  });
  defineRoute({
    ...given,
    refusals: ['invalid_mode'],
    handle: () => ({ refusal: new Refusal('invalid_mode') }),
  });
  defineRoute({
    ...given,
    refusals: ['invalid_mode'],
    // @ts-expect-error The route does not list the code.
    handle: () => ({ refusal: new Refusal('missing_model') }),
  });
});

const Document = Type.Object({
  paths: Type.Record(
    Type.String(),
    Type.Record(
      Type.String(),
      Type.Object({ responses: Type.Record(Type.String(), Type.Object({ description: Type.String() })) }),
    ),
  ),
  components: Type.Object({ schemas: Type.Record(Type.String(), Type.Unknown()) }),
});

describe('the running service does what its list says', () => {
  let service: TestService;
  let routes: readonly Route[];
  beforeAll(async () => {
    service = await startTestService({ cold: true, payment_provider: paddleProvider(SETTINGS) });
    routes = routesOf(service.service.services);
  });
  afterAll(() => service.close());

  test.each([
    ['/v1/v1/systemone', '/v1/systemone', 'must not end with /v1'],
    ['/v1/v1/models/decision-1', '/v1/models/{id}', 'must not end with /v1'],
    ['/decisions', '/v1/decisions', 'must end with /v1'],
    ['/systemone/', '/v1/systemone', 'must end with /v1'],
    ['//v1/systemone', '/v1/systemone', 'has a slash too many'],
    ['/v1//models/decision-1', '/v1/models/{id}', 'has a slash too many'],
  ])('%s is told that the base URL of its client is wrong', async (path, meant, advice) => {
    // By hand, because `fetch` takes one of two leading slashes away.
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    const response = asResponse(parseRaw(await sendRaw(service.server.address, head)));
    const { error } = await expectError(response, 'not_found');
    expect(error.message).toBe(
      `This path does not exist, but ${meant} does: the base URL of this client ${advice}.`,
    );
  });

  test.each(['/v1/nothing', '/v1', '/v1/', '/v1/healthz', '/v1/v1/v1/models', '/nothing', '/v1//nothing'])(
    '%s is a path that does not exist, and no more is said',
    async (path) => {
      const { error } = await expectError(await service.fetch(path), 'not_found');
      expect(error.message).toBe(ERRORS.not_found.message);
    },
  );

  test('every path takes the methods of its routes and no other', async () => {
    for (const [path, of_path] of Map.groupBy(routes, (route) => route.path)) {
      const taken = of_path.map(({ method }) => method);
      for (const method of METHODS) {
        const response = await service.fetch(path, { method });
        if (taken.includes(method)) {
          expect([method, path, response.status === 404 || response.status === 405]).toEqual([
            method,
            path,
            false,
          ]);
          await response.arrayBuffer();
        } else {
          expect(response.headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(taken));
          await expectError(response, 'method_not_allowed');
        }
      }
    }
  });

  test('no cache keeps an answer unless its route says so, because it would give it to clients with another key', async () => {
    const { key } = await addAccount(service);
    for (const headers of [{ 'x-api-key': key }, undefined]) {
      for (const path of ['/v1/models', '/v1/models/decision-1', '/v1/models/nothing', '/nothing']) {
        const response = await service.fetch(path, headers === undefined ? {} : { headers });
        expect([path, response.headers.get('cache-control')]).toEqual([path, 'no-store']);
      }
    }
    const page = await service.fetch('/swagger');
    expect(page.headers.get('cache-control')).toBe('no-cache');
  });

  test('the document has the routes with an operation and no other, with every code that they list', async () => {
    const document: unknown = await (await service.fetch('/swagger/json')).json();
    if (!Value.Check(Document, document)) throw new Error('not a document');
    const shown = routes.filter(({ operation }) => operation !== null);
    const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.sort()).toEqual(shown.map(({ method, path }) => `${method} ${path}`).sort());
    for (const { method, path, refusals } of shown) {
      const responses = document.paths[path]?.[method.toLowerCase()]?.responses ?? {};
      const codes = Object.entries(responses).flatMap(([status, { description }]) =>
        [...description.matchAll(/^`(\w+)`: /gm)].map(([, code]) => `${status} ${code}`),
      );
      const listed = [...COMMON_CODES, ...refusals].flatMap((code) => {
        const row = ERRORS[code];
        const statuses = 'other_status' in row ? [row.status, row.other_status] : [row.status];
        return statuses.map((status) => `${status} ${code}`);
      });
      expect(codes.sort()).toEqual(listed.sort());
    }
  });

  test('every schema that the document refers to is in it', async () => {
    const text = await (await service.fetch('/swagger/json')).text();
    const document: unknown = JSON.parse(text);
    if (!Value.Check(Document, document)) throw new Error('not a document');
    const named = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name ?? '');
    expect([...new Set(named)].sort()).toEqual(Object.keys(document.components.schemas).sort());
  });
});

test('the log line of a request has the status that was sent', async () => {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const output = new BoundedOutput(stream, Number.POSITIVE_INFINITY);
  const logged = await startTestService({ cold: true, log: createLog('info', output) });
  const sent: number[] = [];
  for (const [method, path] of [
    ['GET', '/nothing'],
    ['POST', '/v1/models'],
    ['GET', '/v1/models'],
    ['GET', '/swagger'],
  ] as const) {
    const response = await logged.fetch(path, { method });
    await response.text();
    sent.push(response.status);
  }
  await logged.close();
  await output.flush(60_000);
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line): { msg: string; status?: number } => JSON.parse(line))
    .filter(({ msg }) => msg === 'request');
  expect(lines.map(({ status }) => status)).toEqual(sent);
});
