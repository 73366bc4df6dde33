/**
 * Tokens a second of the whole service over HTTP at saturation ÷ llama.cpp's own prompt speed. Requests have five
 * questions about a new record of 300 tokens each, on 16 connections. llama.cpp reads the same number of tokens as one
 * sequence, with the same libllama, file and number of threads. The target is at least 0.9.
 *
 *   bun bench/engine-http.ts [rounds, default 5]
 */
import autocannon from 'autocannon';
import { THREADS } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { openLlamaReader } from './support/llama-reader.ts';
import { startServiceProcess } from './support/service-process.ts';
import { median, report, rounded } from './support/statistics.ts';

const CONNECTIONS = 16;
const REQUESTS = 48;
const rounds = Number(process.argv[2] ?? 5);

const service = await startServiceProcess('real', THREADS);
const llama = await openLlamaReader(THREADS, 1024);
let records = 0;
let request_tokens = 0;

/** Returns the billed tokens a second of `requests` answered requests. */
async function serve(requests: number): Promise<number> {
  let tokens = 0;
  let answered = 0;
  const before = performance.now();
  await autocannon({
    url: service.address,
    connections: CONNECTIONS,
    amount: requests,
    timeout: 120,
    requests: [
      {
        method: 'POST',
        path: '/v1/decisions',
        headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
        setupRequest: (request) => ({
          ...request,
          body: JSON.stringify({ ...FIVE_QUESTIONS, state: `${records++} ${FIVE_QUESTIONS.state}` }),
        }),
        onResponse: (status, body) => {
          if (status !== 200) return;
          const { usage }: { usage: { input_tokens: number } } = JSON.parse(body);
          tokens += usage.input_tokens;
          answered += 1;
        },
      },
    ],
  });
  const seconds = (performance.now() - before) / 1000;
  if (answered < requests) throw new Error(`${answered} of ${requests} requests were answered.`);
  request_tokens = tokens / requests;
  return tokens / seconds;
}

/** Returns llama.cpp's tokens a second on as many tokens as a request has. */
async function read(times: number): Promise<number> {
  const count = Math.round(request_tokens);
  const prompt = llama.tokens('A parcel is late. '.repeat(count), count);
  const before = performance.now();
  for (let time = 0; time < times; time++) {
    await llama.read(prompt);
  }
  return (1000 * times * count) / (performance.now() - before);
}

try {
  await serve(CONNECTIONS);
  await read(1);
  const served: number[] = [];
  const prompted: number[] = [];
  for (let round = 0; round < rounds; round++) {
    served.push(await serve(REQUESTS));
    prompted.push(await read(REQUESTS / 3));
  }
  report({
    bench: 'engine-http',
    threads: THREADS,
    connections: CONNECTIONS,
    rounds,
    request_tokens,
    service_tokens_per_s: rounded(median(served)),
    service_requests_per_s: rounded(median(served) / request_tokens),
    prompt_tokens_per_s: rounded(median(prompted)),
    speed_ratio: rounded(median(served.map((speed, round) => speed / (prompted[round] ?? Number.NaN)))),
  });
} finally {
  await service.stop();
}
process.exit(0);
