import { expect, test } from 'bun:test';
import { SMALL_REQUEST } from '../support/requests.ts';
import { expectRefused, inProcess, tds } from './support.ts';

const decide = (url: string) =>
  tds(['decide', '-', '--url', url], {
    env: { TDS_API_KEY: 'sk_svc_x' },
    stdin: JSON.stringify(SMALL_REQUEST),
  });

test.each([307, 308])(
  'a record is sent to the address that was named, and by a %d to no other',
  async (status) => {
    const received: string[] = [];
    using other = Bun.serve({
      port: 0,
      async fetch(request) {
        received.push(await request.text());
        return new Response();
      },
    });
    using named = Bun.serve({ port: 0, fetch: () => Response.redirect(other.url.href, status) });
    const url = named.url.origin;
    expectRefused(await decide(url), `What answers at ${url} is not this service (HTTP ${status}).`);
    expect(received).toEqual([]);
  },
);

test('what answers with a page of its own is named as what it is', async () => {
  using proxy = Bun.serve({
    port: 0,
    fetch: () => new Response('<html>Bad Gateway</html>', { status: 502 }),
  });
  const url = proxy.url.origin;
  expectRefused(await decide(url), `What answers at ${url} is not this service (HTTP 502).`);
});

test('an address where nothing answers is named as that', async () => {
  const gone = Bun.serve({ port: 0, fetch: () => new Response() });
  const url = gone.url.origin;
  await gone.stop(true);
  expectRefused(
    await decide(url),
    `No service answers at ${url}: start one with "tds serve", name another with --url, or use --local.`,
  );
});

test.each(['127.0.0.1:8080', 'localhost:8080', 'tds.example.com', 'ftp://tds.example.com'])(
  '%s is no address of a service, and is named as wrong usage',
  async (url) => {
    const { code, stderr } = await inProcess(['decide', '-', '--url', url]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('It must be an address such as http://127.0.0.1:8080.'),
    ]);
  },
);
