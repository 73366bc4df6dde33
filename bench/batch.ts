/**
 * Measures how many questions a second a batch answers, beside single calls over 16 connections: one question about
 * each record, in alternating rounds on the same service, with every record new.
 *
 *   bun bench/batch.ts [--records 1000] [--rounds 5] [--engine real|instant]
 */

import { parseArgs } from 'node:util';
import { THREADS } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { type ServiceProcess, startServiceProcess } from './support/service-process.ts';
import { median, report, rounded } from './support/statistics.ts';

const CONNECTIONS = 16;

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    engine: { type: 'string', default: 'real' },
  },
});
const records = Number(values.records);
const rounds = Number(values.rounds);
const engine = values.engine === 'instant' ? 'instant' : 'real';

const { refund } = FIVE_QUESTIONS.questions;
const QUESTIONS = { refund };

/** Numbers the records of all rounds, so that no record is in the memory of the engine. */
let next_record = 0;
function newRecord(): string {
  next_record += 1;
  return `Order ${next_record}: ${FIVE_QUESTIONS.state}`;
}

/** Sends one request, and returns its response after checking the status. */
async function post({ address, key }: ServiceProcess, path: string, body: string): Promise<string> {
  const response = await fetch(`${address}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body,
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`);
  return text;
}

async function askByBatch(service: ServiceProcess): Promise<void> {
  const lines = Array.from({ length: records }, () => ({ state: newRecord() }));
  const body = [{ questions: QUESTIONS }, ...lines].map((line) => JSON.stringify(line)).join('\n');
  const answers = (await post(service, '/v1/decisions/batch', body)).split('\n').slice(0, -1);
  const failed = answers.filter((answer) => !answer.includes('"object":"decision"'));
  if (answers.length !== records || failed.length > 0) throw new Error(`no batch of answers: ${failed[0]}`);
}

async function askOneByOne(service: ServiceProcess): Promise<void> {
  let left = records;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      const body = { model: 'decision-1', state: newRecord(), questions: QUESTIONS };
      await post(service, '/v1/decisions', JSON.stringify(body));
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
}

/** Returns the questions a second of one round. */
async function speedOf(ask: (service: ServiceProcess) => Promise<void>): Promise<number> {
  const started_ms = performance.now();
  await ask(service);
  return (records * 1_000) / (performance.now() - started_ms);
}

const service = await startServiceProcess(engine, THREADS);
try {
  const speeds = { batch: [] as number[], single: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    speeds.batch.push(await speedOf(askByBatch));
    speeds.single.push(await speedOf(askOneByOne));
  }
  const [batch, single] = [median(speeds.batch), median(speeds.single)];
  report({
    bench: 'batch',
    engine,
    records,
    rounds,
    threads: THREADS,
    connections: CONNECTIONS,
    batch_questions_per_s: rounded(batch),
    single_questions_per_s: rounded(single),
    ratio: rounded(batch / single),
  });
} finally {
  await service.stop();
}
