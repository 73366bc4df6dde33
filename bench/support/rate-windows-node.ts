/** One node of `bench/rate-windows.ts`: a process that admits requests by its tasks. */
import { RedisClient } from 'bun';
import { connectPostgres } from '../../db/postgres/connection.ts';
import { PostgresRateWindows } from '../../db/postgres/rate-windows.ts';
import { WINDOW_MS } from '../../src/limits/rate-status.ts';
import { systemClock } from '../../src/time/clock.ts';

/** The task of a node. */
export interface Task {
  readonly store: 'postgres' | 'redis';
  readonly callers: number;
  /** The pause of a caller between requests; 0 for none. */
  readonly interval_ms: number;
  readonly organizations: number;
  readonly seconds: number;
}

/** The latency of each admission. */
export interface Measured {
  readonly latencies_ms: readonly number[];
}

const LIMITS = { requests_per_minute: 1_000_000_000, tokens_per_minute: 1_000_000_000_000 };
const ESTIMATED_TOKENS = 446;
const BILLED_TOKENS = 430;

/** Admits one request, and settles it without a wait once its tokens are known, as in the service. */
type Admit = (organization_id: string) => Promise<void>;

/**
 * The rules of the windows as a script of Redis or Valkey: an exact sliding log, sums beside it, the server's clock.
 * Each key has entries as `time:number:tokens`, oldest first, and settlements in a hash.
 */
const ADMIT = `
local sums, log, settled = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local requests = tonumber(redis.call('HGET', sums, 'requests') or 0)
local tokens = tonumber(redis.call('HGET', sums, 'tokens') or 0)
local oldest = redis.call('LINDEX', log, 0)
while oldest do
  local at, id, amount = oldest:match('(%d+):(%d+):(%d+)')
  if tonumber(at) > now - ${WINDOW_MS * 1_000} then break end
  local billed = redis.call('HGET', settled, id)
  redis.call('HDEL', settled, id)
  requests = requests - 1
  tokens = tokens - tonumber(billed or amount)
  redis.call('LPOP', log)
  oldest = redis.call('LINDEX', log, 0)
end
if requests >= tonumber(ARGV[1]) then return {1, requests, tokens, 0} end
requests = requests + 1
local fits = tokens == 0 or tokens + tonumber(ARGV[3]) <= tonumber(ARGV[2])
local amount = fits and tonumber(ARGV[3]) or 0
tokens = tokens + amount
local id = redis.call('HINCRBY', sums, 'next', 1)
redis.call('RPUSH', log, string.format('%.0f:%d:%d', now, id, amount))
redis.call('HSET', sums, 'requests', requests, 'tokens', tokens)
return {fits and 0 or 2, requests, tokens, id}`;
const SETTLE = `
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[2] - ARGV[3])
return 0`;

async function onPostgres(url: string): Promise<Admit> {
  const windows = new PostgresRateWindows({
    connect: () => connectPostgres(url, { connections: 1 }),
    clock: systemClock,
    onProblem: (error) => {
      throw error;
    },
  });
  await windows.forgetIdle();
  return async (organization_id) => {
    const admission = await windows.admit(organization_id, LIMITS, ESTIMATED_TOKENS);
    if (!admission.admitted) throw new Error('the limits are out of reach');
    void admission.reservation.settle(BILLED_TOKENS);
  };
}

async function onRedis(url: string): Promise<Admit> {
  const client = new RedisClient(url);
  const load = async (script: string) => String(await client.send('SCRIPT', ['LOAD', script]));
  const [admit, settle] = [await load(ADMIT), await load(SETTLE)];
  const limits = [String(LIMITS.requests_per_minute), String(LIMITS.tokens_per_minute)];
  return async (organization_id) => {
    const keys = ['sums', 'log', 'settled'].map((part) => `{${organization_id}}:${part}`);
    const answer: unknown = await client.send('EVALSHA', [
      admit,
      '3',
      ...keys,
      ...limits,
      String(ESTIMATED_TOKENS),
    ]);
    if (!Array.isArray(answer) || answer[0] !== 0) throw new Error('the limits are out of reach');
    const settled = [String(answer[3]), String(BILLED_TOKENS), String(ESTIMATED_TOKENS)];
    void client.send('EVALSHA', [settle, '3', ...keys, ...settled]);
  };
}

async function work(admit: Admit, task: Task): Promise<Measured> {
  const { callers, interval_ms, organizations, seconds } = task;
  const latencies_ms: number[] = [];
  const end_ms = performance.now() + seconds * 1_000;
  let asked = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      let next_ms = performance.now() + Math.random() * interval_ms;
      await Bun.sleep(next_ms - performance.now());
      for (let now_ms = performance.now(); now_ms < end_ms; now_ms = performance.now()) {
        asked += 1;
        await admit(`org_${asked % organizations}`);
        latencies_ms.push(performance.now() - now_ms);
        next_ms += interval_ms;
        if (interval_ms > 0) await Bun.sleep(Math.max(0, next_ms - performance.now()));
      }
    }),
  );
  return { latencies_ms };
}

const [postgres_url = '', redis_url = ''] = process.argv.slice(2);
const stores = {
  postgres: await onPostgres(postgres_url),
  redis: redis_url === '' ? null : await onRedis(redis_url),
};
process.on('message', async (task: Task) => {
  const admit = stores[task.store];
  if (admit !== null) process.send?.(await work(admit, task));
});
process.send?.('ready');
