import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { propertySeed } from '../ledger/support.ts';
import { CONTENTS, ORDINARY_BODY, PLACES } from '../support/hostile-bodies.ts';
import { type HostileService, startHostileService } from '../support/hostile-service.ts';

setDefaultTimeout(600_000);

/** The longest block that a body may cause ÷ the one of an ordinary body of the same size. */
const RATIO_MAX = 10;
/** A block that is too long must be so every time: the compiler and the garbage collector have their moments. */
const ATTEMPTS = 4;

let service: HostileService;
beforeAll(async () => {
  service = await startHostileService();
  for (let warming = 0; warming < 3; warming += 1) await service.cost(ORDINARY_BODY, 'fast');
});
afterAll(() => service.close());

/** The least of some ratios to the ordinary body, which is sent in turns with the other. */
async function ratioOf(body: Uint8Array<ArrayBuffer>, mode: 'fast' | 'consistent'): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && least > RATIO_MAX; attempt += 1) {
    const ordinary = await service.cost(ORDINARY_BODY, 'fast');
    expect(ordinary.status).toBe(200);
    const hostile = await service.cost(body, mode);
    expect([200, 400, 422]).toContain(hostile.status);
    least = Math.min(least, hostile.block_ms / ordinary.block_ms);
  }
  return least;
}

function bodyOf(place: string, content: string): Uint8Array<ArrayBuffer> {
  const [write, filling] = [PLACES[place], CONTENTS[content]];
  if (write === undefined || filling === undefined) throw new Error(`no ${content} in ${place}`);
  return new Uint8Array(Buffer.from(write(filling)));
}

const COLLISIONS = Object.keys(CONTENTS).filter((content) => content.includes('collide'));

test.each(Object.keys(PLACES).flatMap((place) => COLLISIONS.map((content) => [content, place] as const)))(
  '%s in %s hold nobody else up',
  async (content, place) => {
    const body = bodyOf(place, content);
    for (const mode of ['fast', 'consistent'] as const)
      expect(await ratioOf(body, mode)).toBeLessThan(RATIO_MAX);
  },
);

test('nothing else that fills a body does, wherever it is', async () => {
  const anywhere = fc.record({
    place: fc.constantFrom(...Object.keys(PLACES)),
    content: fc.constantFrom(...Object.keys(CONTENTS)),
    mode: fc.constantFrom('fast' as const, 'consistent' as const),
  });
  await fc.assert(
    fc.asyncProperty(anywhere, async ({ place, content, mode }) => {
      expect(await ratioOf(bodyOf(place, content), mode)).toBeLessThan(RATIO_MAX);
    }),
    { numRuns: 24, seed: propertySeed('hostile bodies'), interruptAfterTimeLimit: 240_000 },
  );
});
