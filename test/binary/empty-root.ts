import { dlopen } from 'bun:ffi';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ChildServer } from '../support/child-server.ts';
import { type Finished, finished } from '../support/finished.ts';

const EXECUTABLE = join(import.meta.dir, `../../dist/tds-${process.platform}-${process.arch}`);
/** The environment of a process in the root: where `chroot` is, and the folder for unpacking. */
const ENVIRONMENT = { PATH: process.env.PATH, TDS_CACHE: '/cache' };
const DEVICES = ['null', 'urandom'];
const MAP_LINE = / (\/\S+\.so[\d.]*)$/gm;

function run(...command: readonly string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync([...command]);
  if (!success) throw new Error(`${command.join(' ')} failed: ${stderr}`);
  return stdout.toString();
}

/** The files of the C library that an executable names, with its loader. */
function librariesOf(executable: string): readonly string[] {
  return [...run('ldd', executable).matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path ?? '');
}

/**
 * A root with the executable, the C library's files, `/proc` and two devices. It has no shell, no compiler, no CA, no
 * user database, and no network but the loopback. All of it is read-only but `/data` and `/cache`, which begin empty.
 */
export class EmptyRoot {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
    run('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', path);
    for (const library of librariesOf(EXECUTABLE)) {
      mkdirSync(join(path, dirname(library)), { recursive: true });
      copyFileSync(library, join(path, library));
    }
    copyFileSync(EXECUTABLE, join(path, 'tds'));
    for (const folder of ['data', 'cache', 'proc', 'dev', 'tmp']) mkdirSync(join(path, folder));
    run('mount', '--rbind', '/proc', join(path, 'proc'));
    for (const device of DEVICES) {
      writeFileSync(join(path, 'dev', device), '');
      run('mount', '--bind', `/dev/${device}`, join(path, 'dev', device));
    }
    run('mount', '-o', 'remount,ro', path);
    run('mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', join(path, 'data'));
    run('mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', join(path, 'cache'));
    raiseLoopback();
  }

  /** Runs `tds …` in there to its end. */
  tds(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    const options = { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' } as const;
    return finished(
      Bun.spawn(['chroot', this.path, '/tds', ...args], { env: { ...ENVIRONMENT, ...env }, ...options }),
    );
  }

  /** Starts a server in there, with the embedded weights, by the executable or a copy of it. */
  serve(
    flags: readonly string[] = [],
    more: Readonly<Record<string, string>> = {},
    executable = '/tds',
  ): Promise<ChildServer> {
    const env = { ...ENVIRONMENT, ...more };
    const program = ['chroot', this.path, executable];
    return new ChildServer('/data/service', flags, { model: null, program, env }).ready();
  }

  /** Makes the cache folder as it was before the first start. */
  emptyCache(): void {
    for (const name of new Bun.Glob('*').scanSync({ cwd: this.cache, onlyFiles: false }))
      rmSync(join(this.cache, name), { recursive: true });
  }

  get cache(): string {
    return join(this.path, 'cache');
  }

  /** The shared objects that a process in there has mapped, by their paths in there. */
  async librariesIn(pid: number): Promise<ReadonlySet<string>> {
    const maps = await Bun.file(`/proc/${pid}/maps`).text();
    const paths = [...maps.matchAll(MAP_LINE)].map(([, path]) => path ?? '');
    return new Set(paths.map((path) => path.replace(this.path, '')));
  }
}

/** A new network namespace has a loopback that is down, and a bare machine no program that raises it. */
function raiseLoopback(): void {
  const SIOCSIFFLAGS = 0x8914;
  const IFF_UP_RUNNING = 0x41;
  const AF_INET = 2;
  const SOCK_DGRAM = 2;
  const { symbols } = dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  });
  const request = Buffer.alloc(40);
  request.write('lo');
  request.writeInt16LE(IFF_UP_RUNNING, 16);
  const socket = symbols.socket(AF_INET, SOCK_DGRAM, 0);
  if (symbols.ioctl(socket, SIOCSIFFLAGS, request) !== 0) throw new Error('the loopback cannot be raised');
  symbols.close(socket);
}
