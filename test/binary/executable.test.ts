import { beforeAll, describe, expect, test } from 'bun:test';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { findLibrary } from '../../native/addon/library.ts';
import { USE_FILE } from '../../src/binary/in-use.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { LicensedPart } from '../../src/program/licenses.ts';
import { field, textField } from '../cli/support.ts';
import { startSmtpReceiver } from '../console/smtp-receiver.ts';
import { ENOUGH_NOULS } from '../eval/support.ts';
import { OtlpReceiver } from '../support/otlp-receiver.ts';
import { EmptyRoot } from './empty-root.ts';

// Run by `bun run test:binary`, which builds the executable and enters namespaces of its own.
const ROOT = process.env.TDS_TEST_ROOT;

const QUESTION = {
  model: 'decision-1',
  state: 'I was charged twice for order 8812. Please give the second payment back.',
  questions: {
    refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
    team: {
      type: 'choice',
      instructions: 'Which team?',
      criteria: { billing: 'payments', technical: 'bugs' },
    },
  },
};
const DATA = ['--data', '/data/service'];

async function ask(address: string, key: string): Promise<unknown> {
  const response = await fetch(`${address}/v1/decisions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(QUESTION),
  });
  return { status: response.status, body: await response.json() };
}

/** A client of the console's API, in place of a browser. */
class Visitor {
  #cookie = '';
  #csrf_token = '';

  constructor(private readonly address: string) {}

  /** Sends a change; returns its status. */
  async send(path: string, body: unknown): Promise<number> {
    const response = await fetch(`${this.address}/console/api/${path}`, {
      method: 'POST',
      headers: {
        origin: this.address,
        cookie: this.#cookie,
        'x-csrf-token': this.#csrf_token,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    const [cookie] = response.headers.getSetCookie();
    if (cookie !== undefined) this.#cookie = cookie.split(';')[0] ?? '';
    return response.status;
  }

  /** Resolves with the API's answer. */
  async read(path: string): Promise<unknown> {
    const headers = { cookie: this.#cookie };
    return await (await fetch(`${this.address}/console/api/${path}`, { headers })).json();
  }

  /** Who is signed in; null for nobody. */
  async user(): Promise<unknown> {
    const session = await this.read('session');
    const user = field(session, 'user');
    if (user !== null) this.#csrf_token = textField(session, 'csrf_token');
    return user;
  }
}

function tokenIn(text: string): string {
  const token = /token=([\w-]+)/.exec(text)?.[1];
  if (token === undefined) throw new Error(`no link in: ${text}`);
  return token;
}

/** The words of every command. */
function commandsOf(command: ReturnType<typeof createProgram>, words: readonly string[] = []): string[] {
  if (command.commands.length === 0) return [words.join(' ')];
  return command.commands.flatMap((child) => commandsOf(child, [...words, child.name()]));
}

describe.skipIf(ROOT === undefined)('the executable in an empty root', () => {
  let root: EmptyRoot;
  let key: string;
  let organization_id: string;
  beforeAll(async () => {
    root = new EmptyRoot(ROOT ?? '');
    const { stdout, stderr } = await root.tds(['init', '--json', ...DATA]);
    if (stderr !== '') throw new Error(stderr);
    const created: unknown = JSON.parse(stdout);
    key = textField(created, 'key');
    organization_id = textField(created, 'organization_id');
  });

  const unpacked = () => {
    const [name = ''] = readdirSync(root.cache);
    return join(root.cache, name);
  };

  test('says what it is: version, commit, evaluator and the hash of its weights', async () => {
    const { code, stdout } = await root.tds(['--version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^tds \d+\.\d+\.\d+\ncommit [0-9a-f]{12}(-dirty)?\nevaluator addon \(compiled already\), llama\.cpp \S+\nweights decision-1, SHA-256 [0-9a-f]{64}\n$/,
    );
  });

  test('prints the licenses of what it carries, and of nothing else', async () => {
    const { code, stdout } = await root.tds(['licenses', '--json']);
    expect(code).toBe(0);
    const parts: readonly LicensedPart[] = JSON.parse(stdout);
    const names = parts.map(({ name }) => name.replace(/ \d.*$/, ''));
    const weights = 'decision-1, weights derived from SmolLM2-135M-Instruct';
    const expected = [weights, 'llama.cpp', 'Bun', 'node-llama-cpp', 'elysia', 'pino', 'drizzle-orm'];
    expect(expected.filter((name) => !names.includes(name))).toEqual([]);
    // Installed, but not in the bundle.
    expect(names).not.toContain('typescript');
    expect(parts.filter(({ text }) => text.length < 40)).toEqual([]);
    const packed = new Bun.Glob('node_modules/**/package.json').scanSync({ cwd: unpacked(), absolute: true });
    const carried = [...packed]
      .map((path): { readonly name?: string; readonly version?: string } =>
        JSON.parse(readFileSync(path, 'utf8')),
      )
      .filter(({ version }) => version !== undefined)
      .map(({ name }) => name ?? '');
    expect(carried.filter((name) => !names.includes(name))).toEqual([]);
  });

  test('has what it needs: the doctor finds an addon that needs no compiler', async () => {
    const { code, stdout } = await root.tds(['doctor', '--json', '--data', '/data/none']);
    expect(code).toBe(0);
    const findings: unknown = JSON.parse(stdout);
    expect(findings).toContainEqual({
      subject: 'addon',
      state: 'ok',
      detail: expect.stringMatching(/^\/cache\/.*tds-addon\.node, compiled already: no compiler is needed$/),
    });
  });

  test('carries every variant of the CPU kernels that node-llama-cpp has', () => {
    const library = findLibrary(false);
    const variants = (directory: string) =>
      readdirSync(directory)
        .filter((name) => /^libggml-cpu-.*\.so$/.test(name))
        .sort();
    const [packed] = [...new Bun.Glob('**/tds-addon.node').scanSync({ cwd: unpacked(), absolute: true })];
    const wanted = variants(library?.directory ?? '');
    expect(wanted).toContain('libggml-cpu-haswell.so');
    expect(wanted).toContain('libggml-cpu-sapphirerapids.so');
    expect(variants(dirname(packed ?? ''))).toEqual(wanted);
  });

  test('answers, shows its documents and its reference, and stops with exit code 0, again and again', async () => {
    for (let start = 1; start <= 2; start += 1) {
      const server = await root.serve();
      expect(await ask(server.address, key)).toMatchObject({ status: 200, body: { model: 'decision-1' } });
      for (const path of [
        '/docs',
        '/docs/errors',
        '/docs/style.css',
        '/docs/page.js',
        '/swagger',
        '/openapi.json',
      ]) {
        const page = await fetch(`${server.address}${path}`);
        expect([path, page.status, (await page.text()).length > 1_000]).toEqual([path, 200, true]);
      }
      expect(
        [...(await root.librariesIn(server.pid))].filter(
          (path) => !/^\/(cache|lib|lib64|usr\/lib)\//.test(path),
        ),
      ).toEqual([]);
      expect(await server.stop()).toBe(0);
    }
  });

  test('serves the console: its pages, and everything by which people sign in', async () => {
    const smtp = await startSmtpReceiver();
    const server = await root.serve([], { TDS_SMTP_URL: smtp.url, TDS_MAIL_FROM: 'tds@example.com' });
    const { address } = server;

    const page = await fetch(`${address}/console/sign-in`);
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    const html = await page.text();
    for (const [, path] of html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)) {
      const asset = await fetch(`${address}${path}`);
      expect([path, asset.status, (await asset.text()).length > 100]).toEqual([path, 200, true]);
    }
    expect(html).toMatch(/src="\/console\/assets\/[^"]+\.js"/);

    // The first operator: made and let in by the command line.
    const operator = { email: 'operator@example.com', password: 'correct horse battery' };
    expect((await root.tds(['user', 'create', operator.email, 'Olga', '--operator', ...DATA])).code).toBe(0);
    const { stdout: link } = await root.tds(['user', 'reset', operator.email, '--url', address, ...DATA]);
    expect(link).toContain(`${address}/console/reset#token=`);
    const first = new Visitor(address);
    expect(await first.send('reset', { token: tokenIn(link), new_password: operator.password })).toBe(200);
    expect(await first.send('sign-in', { ...operator, password: 'a wrong password' })).toBe(401);
    expect(await first.send('sign-in', operator)).toBe(200);
    expect(await first.user()).toMatchObject({ email: operator.email, is_operator: true });

    // Usage is read by a thread of its own.
    const membership = ['member', 'add', 'My organization', operator.email, 'owner'];
    expect((await root.tds([...membership, ...DATA])).code).toBe(0);
    expect(await ask(address, key)).toMatchObject({ status: 200 });
    const usage = field(await first.read(`organizations/${organization_id}/usage/rows`), 'items');
    expect(usage).toEqual(expect.arrayContaining([expect.objectContaining({ status: 200, questions: 2 })]));

    // Somebody who signs up.
    const ada = { email: 'ada@example.com', password: 'another battery staple' };
    const second = new Visitor(address);
    expect(await second.send('sign-up', { name: 'Ada', ...ada })).toBe(200);
    const verification = { token: tokenIn((await smtp.next()).text), password: ada.password };
    expect(await second.send('verify', { ...verification, password: 'a wrong password' })).toBe(403);
    expect(await second.send('verify', verification)).toBe(200);
    expect(await second.user()).toMatchObject({ email: ada.email, is_operator: false });
    const changed = { current_password: ada.password, new_password: 'yet another staple' };
    expect(await second.send('password', changed)).toBe(200);
    expect(await second.user()).toMatchObject({ email: ada.email });
    expect(await second.send('sign-out', {})).toBe(200);
    expect(await second.user()).toBeNull();
    expect(await second.send('reset-request', { email: ada.email })).toBe(200);
    const token = tokenIn((await smtp.next()).text);
    expect(await second.send('reset', { token, new_password: ada.password })).toBe(200);
    expect(await second.send('sign-in', ada)).toBe(200);

    expect(await server.stop()).toBe(0);
    await smtp.close();
  });

  test('answers through node-llama-cpp too, which tries its library in a fork', async () => {
    const server = await root.serve(['--evaluator', 'llama']);
    expect(await ask(server.address, key)).toMatchObject({ status: 200 });
    expect(await server.stop()).toBe(0);
  });

  test('loads weights anew, in a trial of its own version, where an upgrade has replaced its file', async () => {
    const copy = join(root.path, 'data/tds');
    copyFileSync(join(root.path, 'tds'), copy);
    const server = await root.serve(['--evaluator', 'llama'], {}, '/data/tds');
    rmSync(copy);
    writeFileSync(copy, 'the next version', { mode: 0o755 });
    const reload = ['model', 'reload', 'decision-1', ...DATA];
    expect(await root.tds(reload)).toMatchObject({ code: 0 });
    expect(await server.stop()).toBe(0);
    rmSync(copy);
  });

  test('starts its threads', async () => {
    const workers = [...new Bun.Glob('{src,db,native}/**/*-worker.js').scanSync(unpacked())].sort();
    const sources = [
      ...new Bun.Glob('{src,db,native}/**/*-worker.ts').scanSync(join(import.meta.dir, '../..')),
    ].filter((path) => !path.startsWith('src/console/pages/'));
    expect(workers).toEqual(sources.map((path) => path.replace(/\.ts$/, '.js')).sort());
    // The service starts most of them hourly, or for large files; here each does its work in the executable at once.
    const database = '/data/service/tds.sqlite';
    const read = { of: 'page', filter: { organization_id: null }, limit: 1 };
    const orders: readonly (readonly [name: string, messages: readonly unknown[], answer: unknown])[] = [
      ['backup', [{ database, file: '/data/thread.zst' }], 'done'],
      ['checkpoint', [database], 'done'],
      ['history', [{ path: database, now_ms: Date.now(), prune_before_ms: null }], { audit: { ok: true } }],
      [
        'reader',
        [{ path: database }, { number: 1, read }],
        { number: 1, result: [{ endpoint: '/v1/decisions' }] },
      ],
    ];
    expect(orders.map(([name]) => `db/sqlite/${name}-worker.js`)).toEqual(workers);
    const probe = join(unpacked(), 'node_modules/probe.js');
    writeFileSync(
      probe,
      `const answers = ${JSON.stringify(orders)}.map(([name, messages]) => new Promise((resolve) => {
         const worker = new Worker(import.meta.dir + '/../db/sqlite/' + name + '-worker.js');
         worker.onmessage = ({ data }) => { if (data !== 'claimed') { resolve(data); worker.terminate(); } };
         worker.onerror = (event) => { resolve(event.message); worker.terminate(); };
         for (const message of messages) worker.postMessage(message);
       }));
       console.log(JSON.stringify(await Promise.all(answers)));`,
    );
    const { stdout } = await root.tds([probe.replace(root.path, '')], { TEST_BINDING_CP: 'true' });
    rmSync(probe);
    expect(JSON.parse(stdout)).toMatchObject(orders.map(([, , answer]) => answer));
  });

  test('has the client of PostgreSQL, and what makes its schema', async () => {
    const address = 'postgres://tds@127.0.0.1:1/tds';
    for (const args of [
      ['org', 'list', '--database', address, ...DATA],
      ['database', 'copy', '/data/service', address],
    ]) {
      expect(await root.tds(args)).toEqual({
        code: 1,
        stdout: '',
        stderr:
          'tds: postgres://127.0.0.1:1/tds cannot be reached: start the server or name another with --database.\n',
      });
    }
    const migrations = (path: string) => {
      const cwd = join(path, 'db/postgres/migrations');
      const names = ['meta/_journal.json', ...[...new Bun.Glob('*.sql').scanSync({ cwd })].sort()];
      return names.map((name) => [name, readFileSync(join(cwd, name), 'utf8')]);
    };
    const made_by = migrations(join(import.meta.dir, '../..'));
    expect(made_by.map(([name]) => name)).toContain('0000_initial.sql');
    expect(migrations(unpacked())).toEqual(made_by);
  });

  test('sends traces to a collector', async () => {
    await using receiver = new OtlpReceiver();
    const server = await root.serve(['--otlp-endpoint', receiver.endpoint]);
    expect(await ask(server.address, key)).toMatchObject({ status: 200 });
    expect(await server.stop()).toBe(0);
    expect(receiver.spans.map(({ name }) => name)).toContain('POST /v1/decisions');
  });

  test('runs every command', async () => {
    writeFileSync(join(root.path, 'data/question.json'), JSON.stringify(QUESTION));
    writeFileSync(join(root.path, 'data/questions.json'), JSON.stringify({ questions: QUESTION.questions }));
    writeFileSync(join(root.path, 'data/records.csv'), `id,state\n8812,"${QUESTION.state}"\n`);
    const cases = readFileSync(join(import.meta.dir, '../../src/eval/example-cases.jsonl'));
    writeFileSync(join(root.path, 'data/cases.jsonl'), cases);
    writeFileSync(join(root.path, 'data/labels.jsonl'), ENOUGH_NOULS);
    const server = await root.serve(['--metrics-port', '0']);
    const json = async (...args: readonly string[]): Promise<unknown> => {
      const { code, stdout, stderr } = await root.tds([...args, '--json', ...DATA]);
      if (code !== 0) throw new Error(`tds ${args.join(' ')}: ${stderr}`);
      return JSON.parse(stdout);
    };
    const project = textField(await json('project', 'create', 'My organization', 'Second'), 'id');
    const second_key = textField(await json('key', 'create', project, 'second'), 'id');
    const checkout = async () =>
      textField(await json('credit', 'checkout', 'My organization', '25'), 'payment_id');
    const [payment, unpaid] = [await checkout(), await checkout()];
    const work = ['--limit', '4', '--folds', '2'];
    const on_cpu = ['--gpu', 'none'];
    const lines: readonly (readonly [args: readonly string[], code: number])[] = [
      [['org', 'create', 'Acme'], 0],
      [['org', 'rename', 'Acme', 'Acme2'], 0],
      [['org', 'list'], 0],
      [['org', 'credit', 'Acme2', '25'], 0],
      [['org', 'tier', 'Acme2'], 0],
      [['user', 'create', 'a@example.com', 'Ann'], 0],
      [['user', 'create', 'b@example.com', 'Ben'], 0],
      [['user', 'list'], 0],
      [['member', 'add', 'Acme2', 'a@example.com', 'owner'], 0],
      [['member', 'add', 'Acme2', 'b@example.com', 'developer'], 0],
      [['member', 'role', 'Acme2', 'b@example.com', 'owner'], 0],
      [['member', 'remove', 'Acme2', 'b@example.com'], 0],
      [['member', 'list', 'Acme2'], 0],
      [['project', 'rename', project, 'Third'], 0],
      [['project', 'limit', project, '10'], 0],
      [['project', 'list'], 0],
      [['key', 'list'], 0],
      [['key', 'expire', second_key, '90d'], 0],
      [['key', 'limit', second_key, '5'], 0],
      [['key', 'rotate', second_key, '--overlap', '1d'], 0],
      [['key', 'revoke', second_key], 0],
      [['project', 'archive', project], 0],
      [['credit', 'pending'], 0],
      [['credit', 'confirm', payment], 0],
      [['credit', 'cancel', unpaid], 0],
      [['credit', 'refund', 'Acme2', '1'], 0],
      [['credit', 'history', 'Acme2'], 0],
      [['credit', 'events'], 0],
      // There is no such event: refused in one sentence.
      [['credit', 'assign', 'evt_1', 'Acme2'], 1],
      [['credit', 'dismiss', 'evt_1'], 1],
      [['usage', 'export'], 0],
      [['usage', 'daily'], 0],
      [['usage', 'prune', '--before', '2020-01-01'], 0],
      [['model', 'list'], 0],
      [['model', 'add', 'decision-9', 'decision', '--description', 'Answers.', '--price', '1'], 0],
      [['model', 'price', 'decision-9', '2'], 0],
      [['model', 'close', 'decision-1'], 0],
      [['model', 'open', 'decision-1'], 0],
      [['model', 'alias', 'latest', 'decision-1'], 0],
      [['model', 'add', 'decision-8', '--weights', 'embedded', '--price', '1', ...on_cpu], 0],
      [['model', 'reload', 'decision-8'], 0],
      [['model', 'remove', 'decision-8'], 0],
      [['org', 'suspend', 'Acme2'], 0],
      [['org', 'resume', 'Acme2'], 0],
      [['user', 'operator', 'a@example.com', 'on'], 0],
      [['user', 'reset', 'a@example.com'], 0],
      // It has no upstreams: refused in one sentence.
      [['model', 'drain', 'decision-1', 'http://127.0.0.1:1'], 1],
      [['health'], 0],
      [['top', '--once'], 0],
      [['config'], 0],
      [['install', '--systemd', '--caddy', '--domain', 'd.example.com', '--output', '/data'], 0],
      [['backup', '/data/backup.zst'], 0],
      [['restore', '/data/backup.zst', '--data', '/data/other'], 0],
      // Nobody listens there: refused in one sentence.
      [['database', 'copy', '/data/other', 'postgres://tds@127.0.0.1:1/tds'], 1],
      [['audit', '--database', 'postgres://tds@127.0.0.1:1/tds'], 1],
      [['audit', '--data', '/data/other'], 0],
      [['audit'], 0],
      [['decide', '/data/question.json', '--url', server.address], 0],
      [
        [
          ...['decide', '/data/questions.json', '--batch', '/data/records.csv', '--output', '/data/a.csv'],
          ...['--url', server.address],
        ],
        0,
      ],
      // Its standard input has ended before it began.
      [['mcp', '--url', server.address], 0],
      [['eval', '/data/cases.jsonl', '--output', '/data/evaluation', '--probes', '1', ...work], 0],
      [
        [
          'calibrate',
          '/data/labels.jsonl',
          '--work',
          '/data/evaluation',
          '--output',
          '/data/c.json',
          '--folds',
          '2',
        ],
        0,
      ],
      // Its folder is repaired at the next start.
      [['calibrate', '/data/cases.jsonl', '--work', '/data/evaluation', ...work], 1],
      // Too few labels for a correction: refused in one sentence.
      [
        [
          'tune',
          '/data/cases.jsonl',
          '--work',
          '/data/evaluation',
          '--output',
          '/data/t',
          '--limit',
          '4',
          ...on_cpu,
        ],
        1,
      ],
    ];
    const wrong: string[] = [];
    for (const [args, expected] of lines) {
      const data = args.includes('--data') ? [] : DATA;
      const { code, stderr } = await root.tds([...args, ...data], { TDS_API_KEY: key });
      if (code !== expected || stderr.includes('unexpected'))
        wrong.push(`${args.join(' ')}: ${code} ${stderr}`);
    }
    expect(wrong).toEqual([]);
    expect(readFileSync(join(root.path, 'data/tds.service'), 'utf8')).toContain('ExecStart=/tds serve');
    expect(readFileSync(join(root.path, 'data/a.csv'), 'utf8')).toMatch(/\n8812,0\.\d+,(billing|technical),/);
    const done = [
      ...lines.map(([args]) => args.join(' ')),
      'project create',
      'key create',
      'credit checkout',
    ];
    const others = commandsOf(createProgram()).filter((one) => !done.some((args) => args.startsWith(one)));
    // Those run in the tests above; a new command has a line here.
    expect(others.toSorted()).toEqual(['doctor', 'init', 'licenses', 'serve']);
    for (const words of others) {
      const { code, stdout } = await root.tds([...words.split(' '), '--help']);
      expect([words, code, stdout]).toEqual([words, 0, expect.stringContaining(words)]);
    }
    expect(await server.stop()).toBe(0);
  });

  test('is unpacked once by first starts at the same time', async () => {
    root.emptyCache();
    const starts = await Promise.all([root.tds(['--version']), root.tds(['--version'])]);
    expect(starts.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(readdirSync(root.cache)).toHaveLength(1);
  });

  test('removes what another version unpacked and nobody runs', async () => {
    const old = join(root.cache, '0123456789abcdef');
    mkdirSync(old);
    writeFileSync(join(old, USE_FILE), '');
    utimesSync(join(old, USE_FILE), 1e9, 1e9);
    expect((await root.tds(['--version'])).code).toBe(0);
    expect(readdirSync(root.cache)).toHaveLength(1);
  });

  test('repairs what was damaged since', async () => {
    const [weights = ''] = [
      ...new Bun.Glob('native/models/**/*.gguf').scanSync({ cwd: unpacked(), absolute: true }),
    ];
    const { size } = statSync(weights);
    truncateSync(weights, 1_000);
    rmSync(join(unpacked(), 'src/main.js'));
    expect((await root.tds(['--version'])).code).toBe(0);
    expect(statSync(weights).size).toBe(size);
  });

  test('ends with one sentence where it cannot unpack', async () => {
    expect(await root.tds(['--version'], { TDS_CACHE: '/read-only' })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'tds: /read-only cannot be used (EROFS): name a folder that can be written with TDS_CACHE.\n',
    });
    const small = join(root.path, 'data');
    const { stderr } = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=20m,mode=700', 'tmpfs', small]);
    expect(stderr.toString()).toBe('');
    const { code, stderr: sentence } = await root.tds(['--version'], { TDS_CACHE: '/data' });
    Bun.spawnSync(['umount', small]);
    expect([code, sentence]).toEqual([
      1,
      expect.stringMatching(
        /^tds: \/data has no room for the \d+ MB of the program: free some, or [^\n]+\.\n$/,
      ),
    ]);
  });
});
