/**
 * Measures the longest block of the event loop by a hostile body of a megabyte ÷ by an ordinary one, alternating. The
 * ordinary one is a list of records of the same size. It covers all work of the service without the model. Before that,
 * it measures the time to read JSON ÷ that of `JSON.parse`, which is the cost for an ordinary client.
 *
 *   bun bench/hostile-bodies.ts [rounds, default 5]
 */
import { readJson } from '../src/json/read-json.ts';
import { CONTENTS, ORDINARY_BODY, PLACES } from '../test/support/hostile-bodies.ts';
import { startHostileService } from '../test/support/hostile-service.ts';
import { alternating } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { median, report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 5);

/** The most expensive body of each kind in the fuzz test. */
const HOSTILE = [
  ['names that collide', 'the record', 'fast'],
  ['names that collide', 'the descriptions of all options', 'fast'],
  ['texts that collide', 'all levels', 'consistent'],
  ['names of one character each, and on', 'the record', 'fast'],
  ['small objects', 'all levels', 'fast'],
  ['deep arrays', 'the record', 'fast'],
  ['numbers that are written in 309 digits', 'the record', 'fast'],
  ['exponents', 'all levels', 'consistent'],
  ['signs', 'all levels', 'consistent'],
  ['escapes', 'the record', 'fast'],
] as const;

// These run first, because an ordinary process has read no hostile body.
const TEXTS = {
  five_questions: JSON.stringify(FIVE_QUESTIONS),
  megabyte: Buffer.from(ORDINARY_BODY).toString(),
};
for (const [name, text] of Object.entries(TEXTS)) {
  const repeats = Math.ceil(1_000_000 / text.length);
  const repeated = (read: (json: string) => unknown) => () => {
    for (let repeat = 0; repeat < repeats; repeat += 1) read(text);
    return Promise.resolve();
  };
  const times = await alternating(4 * rounds, { ours: repeated(readJson), native: repeated(JSON.parse) });
  report({
    bench: 'hostile-bodies',
    reading: name,
    bytes: text.length,
    ours_us: rounded((1_000 * times('ours').wall_ms) / repeats),
    native_us: rounded((1_000 * times('native').wall_ms) / repeats),
    ratio: rounded(times('ours').wall_ms / times('native').wall_ms),
  });
}

const service = await startHostileService();
for (const [content, place, mode] of HOSTILE) {
  const [write, filling] = [PLACES[place], CONTENTS[content]];
  if (write === undefined || filling === undefined) throw new Error(`There is no ${content} in ${place}.`);
  const body = new Uint8Array(Buffer.from(write(filling)));
  const blocks = { ordinary: [] as number[], hostile: [] as number[] };
  for (let round = 0; round <= rounds; round += 1) {
    const ordinary = await service.cost(ORDINARY_BODY, 'fast');
    const hostile = await service.cost(body, mode);
    // The first round includes compilation, so it does not count.
    if (round === 0) continue;
    blocks.ordinary.push(ordinary.block_ms);
    blocks.hostile.push(hostile.block_ms);
  }
  report({
    bench: 'hostile-bodies',
    content,
    place,
    mode,
    rounds,
    block_ms: rounded(median(blocks.hostile)),
    ordinary_block_ms: rounded(median(blocks.ordinary)),
    ratio: rounded(median(blocks.hostile) / median(blocks.ordinary)),
  });
}
await service.close();
process.exit(0);
