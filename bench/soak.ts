/**
 * Runs a real `tds serve` with the embedded model at saturation. Its clients ask, err, leave, are slow or ask for much.
 * Meanwhile it is backed up, topped up, reloaded and killed. The end checks exact numbers; exit code 1 if a check
 * fails. Ctrl-C ends it early. Linux only.
 *
 *   bun bench/soak.ts [--minutes 20] [--executable PATH] [--idle 5000] [--slow 500]
 */
import { parseArgs } from 'node:util';
import { descriptorLimit } from '../src/http/file-descriptors.ts';
import { addAccounts } from './soak/accounts.ts';
import { checkBooks } from './soak/books.ts';
import { Clients } from './soak/clients.ts';
import { Crowd } from './soak/crowd.ts';
import { Observed } from './soak/observed.ts';
import { Operator, settings } from './soak/operator.ts';
import { type Measured, results } from './soak/results.ts';
import { type Sample, sampleOf } from './soak/samples.ts';
import { programOf, Served } from './soak/served.ts';
import { checkLog } from './soak/service-log.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    executable: { type: 'string' },
    idle: { type: 'string', default: '5000' },
    slow: { type: 'string', default: '500' },
  },
});
const MINUTE_MS = 60_000;
const SAMPLE_MS = 500;
const PROGRESS_MS = process.stderr.isTTY ? 1_000 : 15_000;
/** The time to close idle connections of the soak's own clients, which the service closes after 75 s. */
const IDLE_CLOSED_MS = 90_000;
/** The number of other open files of a process of the soak. */
const OTHER_DESCRIPTORS = 200;

const [idle, slow, minutes] = [Number(values.idle), Number(values.slow), Number(values.minutes)];
if (descriptorLimit() < idle + slow + OTHER_DESCRIPTORS) {
  process.stderr.write(
    `${idle + slow} connections need ${idle + slow + OTHER_DESCRIPTORS} file descriptors, and ${descriptorLimit()} are allowed: raise "ulimit -Hn", or give --idle and --slow.\n`,
  );
  process.exit(2);
}

const served = new Served(programOf(values.executable));
const observed = new Observed(served);
const samples: Sample[] = [];
const crowds: { readonly idle: number; readonly slow: number }[] = [];
let end_ms = Number.POSITIVE_INFINITY;
const isOver = () => Date.now() >= end_ms;
process.on('SIGINT', () => {
  // A second signal ends it without a table.
  if (end_ms === 0) process.exit(130);
  process.stderr.write('\nEnding early.\n');
  end_ms = 0;
});
process.on('exit', () => served.remove());

await soak();

/** Runs the soak, prints the table and sets the exit code. */
async function soak(): Promise<void> {
  const accounts = await addAccounts(served);
  await served.start(settings());
  const clients = new Clients(observed, accounts, isOver);
  await clients.learnAnswers();
  await clients.learnHugeLatency();
  const before = sampleOf(served.life?.pid ?? 0);

  const crowd = new Crowd(served.address, accounts.crowd, idle, slow);
  const from_ms = Date.now();
  end_ms = Math.min(end_ms, from_ms + minutes * MINUTE_MS);
  const sampling = setInterval(() => {
    const sample = served.life === null ? null : sampleOf(served.life.pid);
    if (sample === null) return;
    samples.push(sample);
    crowds.push({ idle: crowd.idle, slow: crowd.slow });
  }, SAMPLE_MS);
  const progress = setInterval(() => writeProgress(from_ms, crowd), PROGRESS_MS);
  const operator = new Operator(served, observed, accounts, clients, isOver);
  await Promise.all([clients.run(), operator.run(from_ms, minutes * MINUTE_MS)]);
  clearInterval(sampling);
  clearInterval(progress);

  const to_ms = Date.now();
  await crowd.leave();
  const after = await untilClosed(before);
  const exit_code = await served.stop();
  if (exit_code !== 0) observed.complain(`The service ended with ${exit_code}.`);
  const log = await checkLog(served, observed);
  const books = await checkBooks(served, observed, operator.backups);
  const times = { from_ms, to_ms };
  const measured: Measured = {
    accounts,
    served,
    observed,
    operator,
    crowd,
    crowds,
    samples,
    before,
    after,
    ...times,
  };
  process.stdout.write(`\n${results(measured, books, log, { idle, slow })}\n`);
  process.exitCode = observed.complaints().length === 0 ? 0 : 1;
}

/** Samples the service once it has as few descriptors as before, or has had the time to close every connection. */
async function untilClosed(before: Sample | null): Promise<Sample | null> {
  const { pid } = served.life ?? { pid: 0 };
  for (const late_ms = Date.now() + IDLE_CLOSED_MS; ; await Bun.sleep(SAMPLE_MS)) {
    const now = sampleOf(pid);
    if (now === null || Date.now() > late_ms || now.descriptors <= (before?.descriptors ?? 0)) return now;
  }
}

function writeProgress(from_ms: number, crowd: Crowd): void {
  const seconds = Math.round((Date.now() - from_ms) / 1_000);
  const sample = samples.at(-1);
  const parts = [
    `${seconds} s`,
    `${observed.acknowledged.size} answered`,
    `${crowd.idle} idle, ${crowd.slow} slow`,
    `${Math.round(sample?.memory_mb ?? 0)} MB, ${sample?.descriptors ?? 0} descriptors`,
    `${served.kills.length} kills`,
    `${observed.complaints().length} wrong`,
  ];
  process.stderr.write(process.stderr.isTTY ? `\r${parts.join(' · ')}   ` : `${parts.join(' · ')}\n`);
}
