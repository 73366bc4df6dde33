import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { grafanaDashboard } from '../../src/cli/grafana-dashboard.ts';
import { readConfigFile } from '../../src/config/config-file.ts';
import { settingOf } from '../../src/config/settings.ts';
import { expectRefused, firstAsProcess } from './support.ts';

/** A program that is on every machine, where the unit can see it. */
const EXECUTABLE = ['--executable', '/usr/bin/env'];
const ANALYZE = Bun.which('systemd-analyze');

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tds-install-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const { command } = firstAsProcess();
const install = (...args: readonly string[]) => command(['install', ...args, '--output', directory]);
/** The settings of the file that was written, as a start reads them. */
const settings = () => {
  const path = join(directory, 'tds.toml');
  const values = [...(readConfigFile(path)?.values ?? [])];
  return Object.fromEntries(values.map(([name, { text }]) => [settingOf(name).key, text]));
};
const written = (name: string) => readFileSync(join(directory, name), 'utf8');

describe('tds install --systemd', () => {
  test('writes a unit with the values of this machine, and says what to do with it', async () => {
    const { code, stdout } = await install(
      '--systemd',
      ...EXECUTABLE,
      '--port',
      '443',
      '--user',
      'decisions',
      '--drain-seconds',
      '600',
      '--drain-delay',
      '9',
      '--backup-directory',
      '/srv/backups',
    );
    expect(code).toBe(0);
    const unit = written('tds.service');
    expect(unit).not.toContain('{{');
    // No flag: each would go before what an operator writes into the file.
    expect(unit).toContain('\nExecStart=/usr/bin/env serve --config /etc/tds.toml\n');
    expect(settings()).toEqual({
      'data.directory': '/var/lib/tds',
      'database.address': 'sqlite:',
      'server.host': '127.0.0.1',
      'server.port': '443',
      'server.drain_seconds': '600',
      'server.drain_delay': '9',
      'backup.every': '6h',
      'backup.directory': '/srv/backups',
      'metrics.host': '127.0.0.1',
      'metrics.port': '9464',
    });
    // systemd kills the process only after the longest stop, in which requests in flight end.
    expect(unit).toContain('\nTimeoutStopSec=669\n');
    expect(unit).toContain('\nReadWritePaths=/var/lib/tds /srv/backups\n');
    // A core file would hold records and keys.
    expect(unit).toContain('\nLimitCORE=0\n');
    expect(unit).toContain('\nRestartPreventExitStatus=2\n');
    expect(unit).toContain('\nUser=decisions\n');
    expect(unit).toContain('\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\n');
    expect(stdout).toContain(
      'runuser -u decisions -- env TDS_CACHE=/var/cache/tds /usr/bin/env init --config /etc/tds.toml\n',
    );
  });

  test('gives a port that needs no capability none', async () => {
    await install('--systemd', ...EXECUTABLE);
    expect(written('tds.service')).toContain('\nCapabilityBoundingSet=\nAmbientCapabilities=\n');
  });

  test('names PostgreSQL in the unit and the init, without the password, which is for a file of root', async () => {
    const { code, stdout } = await command(['install', '--systemd', ...EXECUTABLE, '--output', directory], {
      env: { TDS_DATABASE: 'postgres://tds:secret@db.example.com:5432/tds?sslmode=require&path=/run' },
    });
    expect(code).toBe(0);
    const address = 'postgres://tds@db.example.com:5432/tds?sslmode=require&path=/run';
    const unit = written('tds.service');
    expect(settings()).toMatchObject({ 'database.address': address, 'server.drain_delay': '5' });
    // PostgreSQL's own.
    expect(settings()).not.toHaveProperty(['backup.every']);
    expect(unit).toContain('\nEnvironmentFile=-/etc/tds.env\n');
    expect(stdout).toContain("put TDS_DATABASE_PASSWORD='...' into /etc/tds.env, of mode 600\n");
    expect(stdout).toContain(
      ` --property=EnvironmentFile=-/etc/tds.env --setenv=TDS_CACHE=/var/cache/tds /usr/bin/env init --config /etc/tds.toml\n`,
    );
    expect(`${unit}${written('tds.toml')}${stdout}`).not.toContain('secret@');
  });

  test.skipIf(ANALYZE === null)('is a unit that systemd takes as it is, and rates as safe', async () => {
    await install('--systemd', ...EXECUTABLE);
    const path = join(directory, 'tds.service');
    const verified = Bun.spawnSync([ANALYZE ?? '', 'verify', '--man=no', path]);
    const complaints = verified.stderr.toString().split('\n');
    expect(complaints.filter((line) => line.includes('tds.service'))).toEqual([]);
    const rated = Bun.spawnSync([ANALYZE ?? '', 'security', '--offline=true', '--threshold=30', path]);
    expect([rated.exitCode, rated.stdout.toString().slice(-200)]).toEqual([0, expect.any(String)]);
  });

  test('refuses a program that the unit would hide from the service', async () => {
    expect(await install('--systemd', '--executable', '/root/tds')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'tds: The unit hides /root/tds from the service: copy the executable to /usr/local/bin/tds, and name it with --executable.\n',
    });
  });

  test.each(['/home/ada/tds', '/tmp/tds', '/root'])(
    'refuses data in %s, which the unit would hide from the service',
    async (data) => {
      expectRefused(
        await install('--systemd', ...EXECUTABLE, '--data', data),
        `The unit hides ${data} from the service: name another directory with --data, such as /var/lib/tds.`,
      );
      expect(readdirSync(directory)).toEqual([]);
    },
  );

  test.each([
    ['--user', 'tds\nExecStartPre=/bin/x'],
    ['--data', '/srv/my data'],
    ['--executable', '/opt/my programs/tds'],
    ['--backup-directory', '/srv/my backups'],
  ])('refuses a value that would mean something else to systemd: %s %j', async (option, value) => {
    const { code, stderr } = await install('--systemd', ...EXECUTABLE, option, value);
    expect(code).toBe(1);
    expect(stderr).toStartWith(`tds: "${value}" cannot be written into a file of settings: choose one of`);
    expect(readdirSync(directory)).toEqual([]);
  });

  test('says lines that a shell can run, wherever the files were written', async () => {
    const folder = join(directory, "a 'b' c");
    mkdirSync(folder);
    const { stdout } = await command(['install', '--systemd', ...EXECUTABLE, '--output', folder]);
    const [, line = ''] =
      /^ {2}(install -m 644 .*) \/etc\/systemd\/system\/tds\.service$/m.exec(stdout) ?? [];
    const installed = Bun.spawnSync(['sh', '-c', `${line} ${join(directory, 'installed')}`]);
    expect(installed.stderr.toString()).toBe('');
    expect(written('installed')).toContain('[Service]');
  });
});

test('tds install --caddy writes a proxy for the domain, in front of the port', async () => {
  expect((await install('--caddy')).stderr).toBe(
    'tds: Name what clients reach the service by with --domain.\n',
  );
  const { code, stdout } = await install('--caddy', '--domain', 'd.example.com', '--port', '9000');
  expect(code).toBe(0);
  // Without it the console's cookies are not Secure, and mailed links lead past the proxy.
  expect(stdout).toContain('under [server] in /etc/tds.toml,');
  const advised = [
    '  client_address_header = "X-Forwarded-For"\n',
    '  public_url = "https://d.example.com"\n',
  ];
  for (const line of advised) expect(stdout).toContain(line);
  writeFileSync(join(directory, 'tds.toml'), ['[server]\n', ...advised].join(''));
  expect(settings()).toEqual({
    'server.client_address_header': 'X-Forwarded-For',
    'server.public_url': 'https://d.example.com',
  });
  const text = written('Caddyfile');
  expect(text).toContain('\nd.example.com {\n');
  expect(text).toContain('\treverse_proxy 127.0.0.1:9000 {\n');
  expect(text).toContain('header_up X-Forwarded-For {remote_host}');
  // Without it Caddy drops bytes of a batch over HTTP/1.1. An older Caddy refuses the file instead.
  expect(text).toContain('\n{\n\tservers {\n');
  expect(text).toContain('\n\t\tenable_full_duplex\n');
  expect(stdout).toContain('let "caddy version" say 2.7 or later');
  expect(text).not.toContain('{{');
});

test.each([
  ['::1', '[::1]:8080'],
  ['::', '[::1]:8080'],
  ['0.0.0.0', '127.0.0.1:8080'],
  ['10.0.0.5', '10.0.0.5:8080'],
])('tds install --caddy reaches a service that listens on %s at %s', async (host, upstream) => {
  expect((await install('--caddy', '--domain', 'd.example.com', '--host', host)).code).toBe(0);
  expect(written('Caddyfile')).toContain(`\treverse_proxy ${upstream} {\n`);
});

test('tds install --grafana writes the dashboard', async () => {
  await install('--grafana');
  expect(JSON.parse(written('tds-dashboard.json'))).toEqual(grafanaDashboard());
});

test('tds install --prometheus writes the rules of alerts, and says how the metrics are read', async () => {
  const rules = join(import.meta.dir, '../../src/deploy/prometheus-alerts.yml');
  const { code, stdout } = await install('--prometheus', '--metrics-host', '::', '--metrics-port', '9000');
  expect(code).toBe(0);
  expect(written('tds-alerts.yml')).toBe(readFileSync(rules, 'utf8'));
  expect(stdout).toContain("      - targets: ['[::1]:9000']\n");
});

test('a file that is there is replaced only with --force, and nothing is written without a wish', async () => {
  expect((await install()).stderr).toBe(
    'tds: Name what to write: --systemd, --caddy, --grafana or --prometheus.\n',
  );
  const path = join(directory, 'tds.service');
  writeFileSync(path, 'mine');
  expect((await install('--systemd', ...EXECUTABLE)).stderr).toBe(
    `tds: ${path} is there already: replace it with --force, or name another folder with --output.\n`,
  );
  expect(written('tds.service')).toBe('mine');
  expect((await install('--systemd', '--force', ...EXECUTABLE)).code).toBe(0);
  expect(written('tds.service')).toContain('[Service]');
});
