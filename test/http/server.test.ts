import { afterEach, describe, expect, test } from 'bun:test';
import { Refusal } from '../../src/errors/errors.ts';
import { BODY_BYTES_MAX, openBodyLimits, readBytes } from '../../src/http/body-bytes.ts';
import type { RequestHandler } from '../../src/http/request-handler.ts';
import { errorResponse } from '../../src/http/responses.ts';
import type { RunningServer } from '../../src/http/server.ts';
import { GET, parseRaw } from '../support/raw-http.ts';
import { TIMEOUTS } from './timeouts.ts';
import { endAll, type Handle, held, ok, RawClient, reported, start, unauthorized } from './transports.ts';

afterEach(endAll);

const LENGTH_UNKNOWN = { 'transfer-encoding': 'chunked' };

test('with the usual times too, a late head is answered before the parser ends it without a word', async () => {
  const client = new RawClient(await start(ok)).send('GET / HTTP/1.1\r\nHo');
  await client.closed;
  expect(parseRaw(client.received).status).toBe(408);
}, 120_000);

describe('the limits of connections', () => {
  test('above the limit of its address a connection is closed at once, and one that ends makes room', async () => {
    const server = await start(ok, { connection_limit: 10, connection_limit_per_address: 2 });
    const [first, second] = [new RawClient(server).send(GET), new RawClient(server).send(GET)];
    await Promise.all([first.responses(1), second.responses(1)]);
    const third = new RawClient(server).send(GET);
    await third.closed;
    expect(third.received).toBe('');
    first.socket.destroy();
    await untilServed(server);
  });

  test('a connection whose request is answered is never closed for another', async () => {
    const { begun, answer, handle } = held();
    const server = await start(handle, { connection_limit: 1, connection_limit_per_address: 10 });
    const busy = new RawClient(server).send(GET);
    await begun;
    const second = new RawClient(server).send(GET);
    await second.closed;
    expect(second.received).toBe('');
    answer();
    await busy.responses(1);
  });

  const UNFINISHED = 'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nx';

  test('two addresses with unfinished bodies lock nobody out: the longest unfinished makes room', async () => {
    const begun: Promise<void>[] = [];
    const server = await start(
      async (request) => {
        if (request.url.endsWith('/body')) await request.text();
        return new Response('ok');
      },
      { connection_limit: 10, connection_limit_per_address: 5 },
    );
    const hostile: RawClient[] = [];
    for (const address of ['127.0.0.2', '127.0.0.3']) {
      for (let index = 0; index < 5; index += 1) {
        const client = new RawClient(server, address).send(
          UNFINISHED.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'),
        );
        // The server asks for the rest when it reads the body.
        begun.push(new Promise((resolve) => client.socket.once('data', () => resolve())));
        hostile.push(client);
      }
    }
    await Promise.all(begun);
    for (let index = 0; index < 3; index += 1) await expectServed(server);
    // Each of the three took the place of the one before, or of the longest unfinished.
    expect(hostile.slice(3).every(({ socket }) => !socket.destroyed)).toBe(true);
  });

  test('nor do two addresses that do not read their responses', async () => {
    const large = new Uint8Array(16 * 1_048_576);
    const server = await start(
      (request) => new Response(request.url.endsWith('/large') ? large : 'ok', { headers: LENGTH_UNKNOWN }),
      { connection_limit: 4, connection_limit_per_address: 2 },
    );
    for (const address of ['127.0.0.2', '127.0.0.3']) {
      for (let index = 0; index < 2; index += 1) {
        const client = new RawClient(server, address).send('GET /large HTTP/1.1\r\nHost: a\r\n\r\n');
        await new Promise((resolve) => client.socket.once('data', resolve));
        client.socket.pause();
      }
    }
    await expectServed(server);
  });

  test("a known client's connection is not closed while an unknown one waits, idle or not", async () => {
    const server = await start(
      async (request, _address, onKnown) => {
        if (request.headers.has('authorization')) onKnown();
        return new Response(await request.text());
      },
      { connection_limit: 3, connection_limit_per_address: 10 },
    );
    const KEY = 'Authorization: Bearer key\r\nHost: a\r\n';
    const idle = new RawClient(server).send(`GET / HTTP/1.1\r\n${KEY}\r\n`);
    await idle.responses(1);
    const uploading = new RawClient(server).send(
      `POST / HTTP/1.1\r\n${KEY}Content-Length: 3\r\nExpect: 100-continue\r\n\r\nx`,
    );
    await new Promise((resolve) => uploading.socket.once('data', resolve));
    for (let index = 0; index < 5; index += 1) {
      const stranger = new RawClient(server).send(GET);
      await stranger.responses(1);
    }
    idle.send(`GET / HTTP/1.1\r\n${KEY}\r\n`);
    uploading.send('yz');
    await Promise.all([idle.responses(2), uploading.responses(1)]);
  });

  test('behind a proxy the limit is one of requests at once, by the last element of the header', async () => {
    const { begun, answer, handle } = held();
    const server = await start((request) => (request.url.endsWith('/held') ? handle(request) : ok(request)), {
      connection_limit: 10,
      connection_limit_per_address: 1,
      client_address_header: 'X-Forwarded-For',
    });
    const from = (list: string, path: string) =>
      new RawClient(server).send(`GET ${path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${list}\r\n\r\n`);
    const first = from('203.0.113.1', '/held');
    await begun;
    const same = from('198.51.100.7, 203.0.113.1', '/');
    const other = from('203.0.113.1, 203.0.113.2', '/');
    await Promise.all([same.responses(1), other.responses(1)]);
    const refused = parseRaw(same.received);
    expect(refused.status).toBe(503);
    expect(refused.headers['retry-after']).toBe('1');
    expect(JSON.parse(refused.body).error.code).toBe('overloaded');
    expect(parseRaw(other.received).status).toBe(200);
    answer();
    await first.responses(1);
    const again = from('203.0.113.1', '/');
    await again.responses(1);
    expect(parseRaw(again.received).status).toBe(200);
  });
});

describe('a client that does not wait for answers', () => {
  const expectFew = async (handle: Handle, text: string) => {
    let handled = 0;
    const server = await start((request) => {
      handled += 1;
      return handle(request);
    });
    const client = new RawClient(server).send(text);
    await client.closed;
    expect(handled).toBeLessThan(20);
  };

  test('has few requests at once on a connection', async () => {
    const { answer, handle } = held();
    await expectFew(handle, GET.repeat(1_000));
    answer();
  });

  test('has few requests answered in one turn of the event loop', async () => {
    await expectFew(ok, GET.repeat(1_000));
  });

  test('gets the answers to a few, in their order', async () => {
    const server = await start((request) => new Response(new URL(request.url).pathname));
    const client = new RawClient(server).send('123'.replace(/./g, 'GET /$& HTTP/1.1\r\nHost: a\r\n\r\n'));
    await client.responses(3);
    expect(client.received.match(/^\/\d/gm)).toEqual(['/1', '/2', '/3']);
  });
});

test('a body of known length is read no faster than the client reads it, and comes whole', async () => {
  const pieces = 500;
  let taken = 0;
  const piece = new Uint8Array(65_536).fill(120);
  const body = () =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (taken === pieces) return controller.close();
          taken += 1;
          controller.enqueue(piece.slice());
        },
      },
      { highWaterMark: 0 },
    );
  const length = pieces * piece.byteLength;
  const server = await start((request) =>
    request.url.endsWith('/large')
      ? new Response(body(), { headers: { 'content-length': String(length) } })
      : new Response(String(taken)),
  );
  const client = new RawClient(server);
  client.socket.pause();
  client.send('GET /large HTTP/1.1\r\nHost: a\r\n\r\n');
  // Twice the same number: nothing more is taken until the client reads.
  const takenNow = async () => Number(await (await fetch(server.address)).text());
  let before = -1;
  for (let now = await takenNow(); now !== before || now === 0; now = await takenNow()) {
    before = now;
    await Bun.sleep(50);
  }
  expect(before).toBeLessThan(pieces);
  client.socket.resume();
  while (client.received.length < length) await new Promise((resolve) => client.socket.once('data', resolve));
  expect(parseRaw(client.received).body).toHaveLength(length);
});

test('the response to a HEAD names the length of its body once', async () => {
  const server = await start(() => new Response(null, { headers: { 'content-length': '12' } }));
  const client = new RawClient(server).send('HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await client.closed;
  expect(client.received.match(/content-length: .*/gi)).toEqual(['content-length: 12']);
});

test('a response that says a file is unchanged has no length, which would be that of the file', async () => {
  const server = await start(() => new Response(null, { status: 304 }));
  const client = new RawClient(server).send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await client.closed;
  expect(client.received).toStartWith('HTTP/1.1 304');
  expect(client.received).not.toMatch(/content-length|transfer-encoding/i);
});

describe('after a body that is too large the connection takes the next request', () => {
  const refused: Handle = async (request) => {
    const read = await readBytes(request, { organization_id: 'org' }, openBodyLimits());
    return read instanceof Refusal ? errorResponse('req_test', read) : new Response('read');
  };
  const piece = 'x'.repeat(BODY_BYTES_MAX);
  test.each([
    ['of a known length', `Content-Length: ${3 * BODY_BYTES_MAX}`, piece.repeat(3)],
    [
      'in chunks',
      'Transfer-Encoding: chunked',
      `${`${BODY_BYTES_MAX.toString(16)}\r\n${piece}\r\n`.repeat(3)}0\r\n\r\n`,
    ],
  ])('%s', async (_, length, body) => {
    const client = new RawClient(await start(refused)).send(
      `POST / HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n`,
    );
    client.send(body).send(GET);
    await client.responses(2);
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });
});

describe('behind a proxy a request that is answered before its end', () => {
  const proxied = { client_address_header: 'X-Forwarded-For' };
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\nfirst';

  test('is the last one of its connection: the rest may be the request of another client', async () => {
    const client = new RawClient(await start(unauthorized, proxied)).send(head);
    await client.responses(1);
    expect(parseRaw(client.received)).toMatchObject({
      status: 401,
      headers: { connection: 'close' },
      body: 'no',
    });
    client.send(GET).send(GET);
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
  });

  test('has its connection closed only when its rest was read, because a reset would take the answer', async () => {
    const half = 'x'.repeat(BODY_BYTES_MAX);
    const client = new RawClient(await start(unauthorized, proxied));
    const failures: Error[] = [];
    client.socket.on('error', (error) => failures.push(error));
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * half.length}\r\n\r\n${half}`);
    await client.responses(1);
    client.send(half);
    await client.closed;
    expect(failures).toEqual([]);
    expect(parseRaw(client.received)).toMatchObject({ status: 401, body: 'no' });
  });

  test('keeps its connection where its end had come', async () => {
    const whole: Handle = async (request) => new Response(await request.text());
    const client = new RawClient(await start(whole, proxied)).send(head).send('x'.repeat(35));
    await client.responses(1);
    client.send(GET);
    await client.responses(2);
    expect(client.received).not.toMatch(/connection: close/i);
  });
});

describe('a body that is sent in chunks', () => {
  const CHUNKED = { 'transfer-encoding': 'chunked' };
  const streamed: Handle = () => new Response(new Blob(['first,', 'second']).stream(), { headers: CHUNKED });

  test('has no length beside, whatever a handler said: not to a HEAD either', async () => {
    const server = await start(
      () => new Response(null, { headers: { ...CHUNKED, 'content-length': 'NaN' } }),
    );
    const client = new RawClient(server).send('HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await client.closed;
    expect(parseRaw(client.received).headers).toMatchObject(CHUNKED);
    expect(client.received).not.toMatch(/content-length/i);
  });

  test('ends with the connection for a client of HTTP/1.0, which knows no chunks', async () => {
    const client = new RawClient(await start(streamed)).send('GET / HTTP/1.0\r\n\r\n');
    await client.closed;
    expect(client.received).not.toMatch(/transfer-encoding|content-length/i);
    expect(parseRaw(client.received).body).toBe('first,second');
  });

  test('is given up when its client is gone', async () => {
    const canceled = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          begun.resolve();
          controller.enqueue(new Uint8Array(65_536));
        },
        cancel: () => canceled.resolve(),
      });
    const server = await start(() => new Response(endless(), { headers: CHUNKED }));
    const client = new RawClient(server);
    client.socket.pause();
    client.send(GET);
    await begun.promise;
    client.socket.destroy();
    await canceled.promise;
  });

  test('comes whole to a client that takes longer than one may leave a response unread', async () => {
    const piece = new Uint8Array(1_048_576);
    let left = 48;
    const large = () =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (left-- === 0) controller.close();
            else controller.enqueue(piece.slice());
          },
        },
        { highWaterMark: 0 },
      );
    const server = await start(() => new Response(large(), { headers: CHUNKED }), { timeouts: TIMEOUTS });
    const client = new RawClient(server).send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    // Reads on in steps of a megabyte, so that all of it takes nearly twice that time.
    let paused_at = 0;
    client.socket.on('data', () => {
      if (client.received.length - paused_at < 1_048_576) return;
      paused_at = client.received.length;
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 75);
    });
    await client.closed;
    expect(client.received.endsWith('\r\n0\r\n\r\n')).toBe(true);
    expect(client.received.length).toBeGreaterThan(48 * piece.byteLength);
  }, 120_000);
});

describe('a request that is answered while it is sent', () => {
  const echoed: RequestHandler['handle'] = (request, _, onKnown) => {
    onKnown(request.url.endsWith('/stream') || undefined);
    return new Response(request.body, { headers: { 'transfer-encoding': 'chunked' } });
  };

  /** Sends a piece at a time for twice as long as a whole request may take. Returns what came until the end. */
  async function sendSlowly(server: RunningServer, path: string): Promise<string> {
    const client = new RawClient(server).send(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const steps = 15;
    for (let step = 0; step < steps; step += 1) {
      client.send('5\r\npiece\r\n');
      await Bun.sleep((2 * TIMEOUTS.request_ms) / steps);
    }
    client.send('0\r\n\r\n');
    await client.closed;
    return parseRaw(client.received).body;
  }

  test('has no end, where the client may send for as long as it likes', async () => {
    const server = await start(echoed, { timeouts: TIMEOUTS });
    expect((await sendSlowly(server, '/stream')).match(/piece/g)).toHaveLength(15);
  }, 120_000);

  test('ends as any other, where it may not', async () => {
    const server = await start(echoed, { timeouts: TIMEOUTS });
    expect((await sendSlowly(server, '/other')).match(/piece/g)?.length).toBeLessThan(15);
  }, 120_000);

  test('is left alone while nothing is there to be read, for longer than a response may be left unread', async () => {
    const answered = Promise.withResolvers<string>();
    const server = await start(
      (_request, _, onKnown) => {
        onKnown(true);
        const late = new ReadableStream<Uint8Array>(
          {
            async pull(controller) {
              controller.enqueue(Buffer.from(await answered.promise));
              controller.close();
            },
          },
          { highWaterMark: 0 },
        );
        return new Response(late, { headers: { 'transfer-encoding': 'chunked' } });
      },
      { timeouts: TIMEOUTS },
    );
    const client = new RawClient(server).send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    // The head comes before the first piece does.
    await client.responses(1);
    await Bun.sleep(1.5 * TIMEOUTS.response_ms);
    answered.resolve('late');
    await client.closed;
    expect(parseRaw(client.received).body).toContain('late');
  }, 120_000);
});

test('a response that cannot be written closes its connection', async () => {
  const broken: Handle = () =>
    new Response(
      new ReadableStream({
        pull() {
          throw new Error('no more');
        },
      }),
    );
  const server = await start((request) => (request.url.endsWith('/broken') ? broken(request) : ok(request)));
  await new RawClient(server).send('GET /broken HTTP/1.1\r\nHost: a\r\n\r\n').closed;
  await expectServed(server);
});

describe('a stop', () => {
  test('waits for what the client of a request left unfinished', async () => {
    const { begun, answer, handle } = held();
    const finished: string[] = [];
    const server = await start(async (request) => {
      const response = await handle(request);
      finished.push('request');
      return response;
    });
    const client = new RawClient(server).send(GET);
    const request = await begun;
    client.socket.destroy();
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    const stopped = server.stop().then(() => finished.push('stop'));
    setTimeout(answer, 50);
    await stopped;
    expect(finished).toEqual(['request', 'stop']);
  });
});

describe('a client that has sent its end', () => {
  const echo = async (request: Request) => {
    const read = await readBytes(request, { client_address: '' }, { ...openBodyLimits(), bytes_max: 100 });
    return read instanceof Refusal ? errorResponse('req_1', read) : new Response(read);
  };

  test('within its body is told that the body ended early', async () => {
    const client = new RawClient(await start(echo));
    client.socket.end('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"st');
    await client.closed;
    const { status, body } = parseRaw(client.received);
    expect(status).toBe(400);
    expect(JSON.parse(body).error).toMatchObject({
      code: 'invalid_json',
      message: 'The request body ended early.',
    });
  });

  test('within the head of its next request gets its answer to a whole one', async () => {
    const asked = Promise.withResolvers<void>();
    const server = await start(async (request) => {
      if (request.method === 'POST') await asked.promise;
      return await echo(request);
    });
    const client = new RawClient(server);
    client.socket.end('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwholeGET / HT');
    // The server has read all of it by then.
    for (let index = 0; index < 3; index += 1) await expectServed(server);
    asked.resolve();
    await client.closed;
    expect(parseRaw(client.received)).toMatchObject({ status: 200, body: 'whole' });
  });

  test.skipIf(process.platform !== 'linux')('gets its answer when it still listens', async () => {
    const { begun, answer, handle } = held();
    const server = await start(handle);
    const client = new RawClient(server).send(GET);
    client.socket.end();
    await begun;
    // Not before the server has asked whether it is still there.
    while (!client.received.includes('100 Continue')) {
      await new Promise((resolve) => client.socket.once('data', resolve));
    }
    answer();
    await client.closed;
    expect(parseRaw(client.received)).toMatchObject({ status: 200, body: 'at last' });
  });

  test('frees its places when it is gone, also where its newest request is of HTTP/1.0', async () => {
    const both_begun = Promise.withResolvers<void>();
    const aborted: Promise<void>[] = [];
    const server = await start(({ signal }) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => resolve());
      if (aborted.push(promise) === 2) both_begun.resolve();
      return promise.then(() => new Response());
    });
    const client = new RawClient(server).send(`${GET}GET / HTTP/1.0\r\nHost: a\r\n\r\n`);
    await both_begun.promise;
    client.socket.destroy();
    await Promise.all(aborted);
  });
});

describe('what is no HTTP request is answered with our error shape', () => {
  const cases = {
    'no request line': ['HELO\r\n\r\n', 400, 'malformed_request'],
    'a method that is none': ['F(B / HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'malformed_request'],
    'a tunnel': ['CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'malformed_request'],
    'headers without end': [
      `GET / HTTP/1.1\r\nHost: a\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    'two lengths': [
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
      'malformed_request',
    ],
  } as const;
  for (const [name, [text, expected, code]] of Object.entries(cases)) {
    test(name, async () => {
      const client = new RawClient(await start(ok)).send(text);
      await client.closed;
      const { status, headers, body } = parseRaw(client.received);
      expect([status, headers['x-request-id']]).toEqual([expected, 'req_test']);
      expect(JSON.parse(body)).toEqual({
        error: { type: 'invalid_request_error', code, message: expect.any(String), param: null },
        request_id: 'req_test',
      });
    });
  }
});

describe('a method that the parser does not know', () => {
  const echo: Handle = ({ method, url }) => new Response(`${method} ${url}`, { status: 405 });

  test('is answered by the handler, as one that no path takes, and the connection is closed', async () => {
    for (const method of ['FROB', 'get', 'Post']) {
      const client = new RawClient(await start(echo)).send(`${method} /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.closed;
      const { status, headers, body } = parseRaw(client.received);
      expect([status, headers.connection, body]).toEqual([405, 'close', 'TRACE http://localhost/a?b']);
    }
  });

  test('behind another request of the same packet is refused without a guess at its path', async () => {
    const client = new RawClient(await start(echo)).send(`${GET}frob /b HTTP/1.1\r\nHost: a\r\n\r\n`);
    await client.closed;
    expect(client.received).toContain('GET http://localhost/');
    expect(parseRaw(client.received).status).toBe(400);
  });
});

describe('what cannot be read of a connection', () => {
  const CHUNKED = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';

  test('does not take the answer from the request before it, which is the last one', async () => {
    const { begun, answer, handle } = held();
    const server = await start(handle);
    const client = new RawClient(server).send(GET);
    await begun;
    client.send('\0\r\n\r\n');
    // A later request is refused later.
    await new RawClient(server).send('\0\r\n\r\n').closed;
    expect([client.socket.destroyed, client.received]).toEqual([false, '']);
    answer();
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(parseRaw(client.received)).toMatchObject({ headers: { connection: 'close' }, body: 'at last' });
  });

  test('is told to the reader of the body that it belongs to', async () => {
    const refusals: unknown[] = [];
    const server = await start(async (request) => {
      try {
        await request.text();
      } catch (reason) {
        refusals.push(reason);
      }
      return new Response('answered', { status: 400 });
    });
    for (const rest of ['zz\r\n', `0\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`]) {
      const client = new RawClient(server).send(`${CHUNKED}2\r\n{}\r\n`).send(rest);
      await client.closed;
      expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
      expect(parseRaw(client.received)).toMatchObject({ headers: { connection: 'close' }, body: 'answered' });
    }
    expect(refusals).toMatchObject([{ code: 'malformed_request' }, { code: 'headers_too_large' }]);
  });
});

test('an expectation that nobody knows is passed over', async () => {
  const client = new RawClient(await start(async (request) => new Response(await request.text())));
  client.send('POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 4\r\n\r\nbody');
  await client.responses(1);
  expect(parseRaw(client.received)).toMatchObject({ status: 200, body: 'body' });
});

test('a client that waits to be asked for its body is asked when it is read, and not before', async () => {
  const read: Handle = async (request) => new Response(await request.text());
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n';
  const refused = new RawClient(await start(unauthorized)).send(head);
  await refused.responses(1);
  expect(refused.received).not.toContain('100 Continue');
  const asked = new RawClient(await start(read)).send(head);
  while (!asked.received.includes('100 Continue')) {
    await new Promise((resolve) => asked.socket.once('data', resolve));
  }
  asked.send('body');
  await asked.responses(1);
  expect(parseRaw(asked.received).body).toBe('body');
});

/** Resolves when a new connection has its request answered: that another has ended is the server's to notice. */
async function untilServed(server: RunningServer): Promise<void> {
  let client: RawClient;
  do {
    client = new RawClient(server).send(GET);
    await Promise.race([client.responses(1), client.closed]);
    client.socket.destroy();
  } while (client.received === '');
  expect(parseRaw(client.received).status).toBe(200);
}

async function expectServed(server: RunningServer): Promise<void> {
  const client = new RawClient(server).send(GET);
  await client.responses(1);
  expect(parseRaw(client.received).status).toBe(200);
  client.socket.destroy();
}

test('a handler that fails is answered 500, and the cause is told with the id of that response', async () => {
  const failure = new Error('the handler failed');
  const { address } = await start(() => Promise.reject(failure));
  const response = await fetch(address);
  expect(response.status).toBe(500);
  expect(reported).toEqual([{ request_id: 'req_test', code: 'internal_error', error: failure }]);
});

test('a response that fails while it is written ends its connection, and the cause is told with its id', async () => {
  const failure = new Error('the disk failed');
  const { address } = await start(() => {
    const body = new ReadableStream({ pull: (controller) => controller.error(failure) });
    return new Response(body, { headers: { 'content-length': '10', 'x-request-id': 'req_cut' } });
  });
  await expect(fetch(address).then((response) => response.text())).rejects.toThrow();
  expect(reported).toEqual([{ request_id: 'req_cut', code: null, error: failure }]);
});
