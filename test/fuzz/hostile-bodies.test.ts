import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { csvLine } from '../../src/usage/csv.ts';
import { propertySeed } from '../ledger/support.ts';
import { longestBlock_ms } from '../support/event-loop.ts';
import {
  COLLIDING_COOKIES,
  CONTENTS,
  NUMBERS,
  ORDINARY_BODY,
  OTHER_PLACES,
  PLACES,
} from '../support/hostile-bodies.ts';
import { type HostileService, type OtherRequest, startHostileService } from '../support/hostile-service.ts';

setDefaultTimeout(600_000);

/** The longest block that a body may cause ÷ the one of an ordinary body of the same size. */
const RATIO_MAX = 10;
/** A block that is too long must be so every time: the compiler and the garbage collector have their moments. */
const ATTEMPTS = 5;

/** As many ordinary bodies as the compiler needs for the code that reads them, and more. */
const ORDINARY_BODIES = 8;

let service: HostileService;
/** The shortest block that an ordinary body has caused so far. */
let ordinary_ms = Number.POSITIVE_INFINITY;
beforeAll(async () => {
  service = await startHostileService();
  for (let body = 0; body < ORDINARY_BODIES; body += 1) await ordinaryBlock_ms();
});
afterAll(() => service.close());

async function ordinaryBlock_ms(): Promise<number> {
  const { status, block_ms } = await service.cost(ORDINARY_BODY, 'fast');
  expect(status).toBe(200);
  ordinary_ms = Math.min(ordinary_ms, block_ms);
  return block_ms;
}

async function hostileBlock_ms(body: Uint8Array<ArrayBuffer>, mode: 'fast' | 'consistent'): Promise<number> {
  const { status, block_ms } = await service.cost(body, mode);
  expect([200, 400, 422]).toContain(status);
  return block_ms;
}

/**
 * The ratio to the shortest block of an ordinary body. Where that is too large, the least of some ratios to the ordinary
 * body, which is then sent in turns with the other.
 */
async function ratioOf(body: Uint8Array<ArrayBuffer>, mode: 'fast' | 'consistent'): Promise<number> {
  let least = (await hostileBlock_ms(body, mode)) / ordinary_ms;
  for (let attempt = 1; attempt < ATTEMPTS && least > RATIO_MAX; attempt += 1) {
    const ordinary = await ordinaryBlock_ms();
    least = Math.min(least, (await hostileBlock_ms(body, mode)) / ordinary);
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

/** Does some work, and resolves with its longest block of the event loop in milliseconds. */
type Block = () => Promise<number>;

function blockOf(request: OtherRequest): Block {
  return async () => {
    const { status, block_ms } = await service.costOf(request);
    expect([200, 422]).toContain(status);
    return block_ms;
  };
}

/** A small request's cost is near the grain of the clock. */
const REPEATS = 10;

async function repeatedBlocks_ms(block_ms: Block): Promise<number> {
  let sum_ms = 0;
  for (let repeat = 0; repeat < REPEATS; repeat += 1) sum_ms += await block_ms();
  return sum_ms;
}

/** The least of some ratios of two pieces of work, which are done in turns. */
async function ratioOfOther(hostile: Block, ordinary: Block): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  // The first one loads and compiles.
  await ordinary();
  for (let attempt = 0; attempt < ATTEMPTS && least > RATIO_MAX; attempt += 1) {
    const ordinary_ms = await repeatedBlocks_ms(ordinary);
    const hostile_ms = await repeatedBlocks_ms(hostile);
    // Both can be below the grain.
    least = Math.min(least, hostile_ms === 0 ? 0 : hostile_ms / ordinary_ms);
  }
  return least;
}

const NAMES = COLLISIONS.filter((content) => content.includes('names'));

test.each(
  Object.entries(OTHER_PLACES).flatMap(([place, write]) =>
    NAMES.map((name) => [name, place, write] as const),
  ),
)('%s in %s hold nobody else up', async (name, _, write) => {
  const content = CONTENTS[name];
  if (content === undefined) throw new Error(`no ${name}`);
  const blockOfAll = (filling: typeof content) => blockOf(write(filling, service.own_models_path));
  expect(await ratioOfOther(blockOfAll(content), blockOfAll(NUMBERS))).toBeLessThan(RATIO_MAX);
});

test('cookies whose names collide hold nobody else up', async () => {
  const page = { path: '/console/api/session', sender: 'stranger' } as const;
  const ratio = await ratioOfOther(
    blockOf({ ...page, cookie: COLLIDING_COOKIES }),
    blockOf({ ...page, cookie: `a=${'b'.repeat(COLLIDING_COOKIES.length)}` }),
  );
  expect(ratio).toBeLessThan(RATIO_MAX);
});

test.each(['\t', '\r', '\n'])('a cell of nothing but %j is written as CSV like any other', async (sign) => {
  const cellOf = (character: string) => {
    const cell = character.repeat(40_000);
    return () => longestBlock_ms(() => Promise.try(() => csvLine([cell])));
  };
  expect(await ratioOfOther(cellOf(sign), cellOf(' '))).toBeLessThan(RATIO_MAX);
});
