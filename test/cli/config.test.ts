import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { firstAsProcess, tds } from './support.ts';

setDefaultTimeout(120_000);

const SECRET = 'pdl_live_hunter2';
const PADDLE = {
  TDS_PADDLE_API_KEY: SECRET,
  TDS_PADDLE_WEBHOOK_SECRET: SECRET,
  TDS_PADDLE_PRODUCT_ID: 'pro_1',
};

const { command } = firstAsProcess();
let root: ReturnType<typeof temporaryDirectory>;
let path: string;
beforeEach(() => {
  root = temporaryDirectory();
  path = join(root.path, 'tds.toml');
});
afterEach(() => root.remove());

function write(text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}

describe('tds config', () => {
  test('prints every value with where it came from, and no secret', async () => {
    write('[server]\nport = 1\nhost = "::1"\n[model]\nqueue_limit = 7\ngpu = "none"\n');
    const shadowed = [
      `server.host in line 3 of ${path} (::1) does not count: TDS_HOST says 127.0.0.2.`,
      `server.port in line 2 of ${path} (1) does not count: --port says 9000.`,
    ];
    const env = { ...PADDLE, TDS_HOST: '127.0.0.2', TDS_CONFIG: path };
    const args = ['config', '--port', '9000'];
    const { code, stdout, stderr } = await command(args, { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: shadowed.map((line) => `tds: ${line}\n`).join('') });
    const cells = new Map(
      stdout.split('\n').map((line) => [line.split(' ')[0], line.split(/ {2,}/).slice(1)]),
    );
    expect(cells.get('server.port')).toEqual(['9000', '--port']);
    expect(cells.get('server.host')).toEqual(['127.0.0.2', 'TDS_HOST']);
    expect(cells.get('model.queue_limit')).toEqual(['7', `line 5 of ${path}`]);
    expect(cells.get('model.evaluation_timeout')).toEqual(['-', 'default']);
    expect(cells.get('paddle.api_key')).toEqual(['********', 'TDS_PADDLE_API_KEY']);
    const json = await command([...args, '--json'], { env });
    expect(stdout + json.stdout).not.toContain(SECRET);
    const { config_file, settings, warnings } = JSON.parse(json.stdout);
    expect({ config_file, warnings }).toEqual({ config_file: path, warnings: shadowed });
    expect(settings).toContainEqual({
      setting: 'model.gpu',
      value: 'none',
      unit: null,
      from: 'file',
      path,
      line: 6,
    });
    expect(settings).toContainEqual({
      setting: 'model.evaluation_timeout',
      value: null,
      unit: 'seconds',
      from: 'default',
    });
    expect(settings).toContainEqual({ setting: 'model.threads', value: 'auto', unit: null, from: 'default' });
  });

  test.each([
    ['an unknown name', '[log]\n\nlevle = "warn"', {}, 'Line 3'],
    ['a bad value', '[server]\nport = 99999', {}, 'Line 2'],
    ['a bad variable', '', { TDS_THREADS: 'all' }, 'The variable TDS_THREADS cannot be "all".'],
    ['half of Paddle', '', { TDS_PADDLE_API_KEY: SECRET }, 'Paddle needs all of TDS_PADDLE_API_KEY,'],
    ['half of TLS', '[tls]\ncert = "c.pem"', {}, '--tls-cert and --tls-key go together'],
  ])(
    'with %s says so in one sentence, with the exit code after which systemd starts nothing again',
    async (_, text, env, words) => {
      write(text);
      const { code, stdout, stderr } = await command(['config', '--config', path], { env });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^tds: [^\n]+\n$/);
      expect(stderr).toContain(words);
      expect(stderr).not.toContain(SECRET);
      expect(
        await command(['serve', '--init', '--data', join(root.path, 'data'), '--config', path], { env }),
      ).toMatchObject({ code: 2, stderr });
      expect(readdirSync(root.path)).toEqual(['tds.toml']);
    },
  );

  test('warns of variables that are no settings, and of secrets that everybody can read', async () => {
    write('[client]\nkey = "sk_svc_hunter2"\n');
    chmodSync(path, 0o644);
    const { code, stderr } = await command(['config', '--config', path], { env: { TDS_PROT: '80' } });
    expect(code).toBe(0);
    expect(stderr).toBe(
      `tds: ${path} holds secrets that every user can read: run "chmod o-r ${path}".\ntds: The variable TDS_PROT is no setting: it changes nothing.\n`,
    );
  });

  test('does not warn of the folder that an executable unpacks itself to, which is no setting', async () => {
    const env = { TDS_CACHE: join(root.path, 'cache') };
    expect(await command(['config'], { env })).toMatchObject({ code: 0, stderr: '' });
  });

  test('--example is printed where the settings are wrong, too', async () => {
    write('broken');
    const { code, stdout } = await command(['config', '--example', '--config', path]);
    expect(code).toBe(0);
    expect(stdout).toContain('#queue_limit = 512');
  });
});

describe('every command takes the file', () => {
  test('the data directory of a command on data', async () => {
    const data = join(root.path, 'elsewhere');
    write(`[data]\ndirectory = ${JSON.stringify(data)}\n`);
    expect((await command(['init', '--config', path])).stdout).toContain(`Initialised ${data}.`);
    expect(await command(['org', 'list', '--config', path])).toMatchObject({ code: 0, stderr: '' });
  });

  test.each([
    ['decide --local', ['decide', '-', '--local']],
    ['eval', ['eval', join(import.meta.dir, '../../src/eval/example-cases.jsonl')]],
    ['calibrate', ['calibrate', join(import.meta.dir, '../../src/eval/example-cases.jsonl')]],
    ['doctor', ['doctor']],
  ])('the model of tds %s', async (name, args) => {
    write('[model]\npath = "nowhere.gguf"\ngpu = "none"\n');
    const all = [...args, '--config', path, ...(name === 'doctor' ? ['--data', root.path] : [])];
    const question =
      '{"model": "decision-1", "state": "a", "questions": {"q": {"type": "noul", "instructions": "b"}}}';
    const { code, stdout, stderr } = await tds(all, { cwd: root.path, stdin: question });
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('nowhere.gguf');
    const is_other = stderr.includes("nowhere.gguf answers in place of the file's model");
    expect(is_other).toBe(name === 'decide --local');
  });

  test('the service that tds decide asks', async () => {
    write('[client]\nurl = "http://127.0.0.1:9"\nkey = "sk_svc_x"\n');
    const question = '{"state": "a", "questions": {}}';
    const { code, stderr } = await tds(['decide', '-', '--config', path], { stdin: question });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'tds: No service answers at http://127.0.0.1:9: start one with "tds serve", name another with --url, or use --local.\n',
    });
  });

  test('and a command whose settings are wrong does nothing', async () => {
    write('[server]\nprot = 1\n');
    const data = join(root.path, 'data');
    expect(await command(['init', '--data', data, '--config', path])).toMatchObject({ code: 2, stdout: '' });
    expect(readdirSync(root.path)).toEqual(['tds.toml']);
  });
});
