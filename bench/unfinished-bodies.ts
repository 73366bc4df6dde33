/**
 * Measures the service's memory while one key's connections have each sent all but the last byte of a body of 1 MB.
 * Also measures another client's latency meanwhile. Linux only, because memory is read from /proc.
 *
 *   bun bench/unfinished-bodies.ts [connections, default 600]
 */
import { connect, type Socket } from 'node:net';
import { BODY_BYTES_MAX } from '../src/http/body-bytes.ts';
import { startServiceProcess } from './support/service-process.ts';
import { median, report, rounded } from './support/statistics.ts';

const connections = Number(process.argv[2] ?? 600);
const REQUESTS = 50;
/** The number of checks without growth after which memory is steady. */
const STEADY_LOOKS = 10;
const LOOK_MS = 200;
const MEBIBYTE = 1_048_576;
const ALMOST_ALL = Buffer.alloc(BODY_BYTES_MAX - 1, ' ');

async function resident_mb(pid: number): Promise<number> {
  const status = await Bun.file(`/proc/${pid}/status`).text();
  return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1_024) / MEBIBYTE;
}

const service = await startServiceProcess('instant', 1);
const { hostname, port } = new URL(service.address);
const head = `POST /v1/decisions HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${service.key}\r\nContent-Length: ${BODY_BYTES_MAX}\r\n\r\n`;

async function listModels(): Promise<number> {
  const before = performance.now();
  await fetch(`${service.address}/v1/models`, { headers: { 'x-api-key': service.key } });
  return performance.now() - before;
}

async function times(): Promise<number> {
  const all: number[] = [];
  for (let index = 0; index < REQUESTS; index++) all.push(await listModels());
  return median(all);
}

const sockets: Socket[] = [];
const statuses = new Map<string, number>();
try {
  const request_before_ms = await times();
  const before_mb = await resident_mb(service.pid);
  for (let index = 0; index < connections; index++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.once('data', (data) => {
      const status = data.toString('latin1').slice(9, 12);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
    socket.write(head);
    socket.write(ALMOST_ALL);
    sockets.push(socket);
  }
  let most_mb = before_mb;
  for (let looks = 0; looks < STEADY_LOOKS; looks++) {
    await Bun.sleep(LOOK_MS);
    const now_mb = await resident_mb(service.pid);
    if (now_mb > most_mb + 1) looks = 0;
    most_mb = Math.max(most_mb, now_mb);
  }
  report({
    bench: 'unfinished-bodies',
    connections,
    sent_mb: rounded((connections * ALMOST_ALL.byteLength) / MEBIBYTE),
    memory_before_mb: rounded(before_mb),
    memory_most_mb: rounded(most_mb),
    growth_mb: rounded(most_mb - before_mb),
    refused: Object.fromEntries(statuses),
    request_before_ms: rounded(request_before_ms),
    request_meanwhile_ms: rounded(await times()),
  });
} finally {
  for (const socket of sockets) socket.destroy();
  await service.stop();
}
