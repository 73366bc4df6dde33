import { readFileSync, rmSync } from 'node:fs';
import { MAIN } from './program.ts';
import { TINY_WEIGHTS } from './tiny-weights.ts';

/** A real `tds serve` in a process of its own, with everything that it prints. */
export interface ChildServer {
  readonly address: string;
  /** The key of the first start; null at later ones. */
  readonly key: string | null;
  readonly pid: number;
  /** Everything printed so far, on standard output and standard error. */
  output(): string;
  /** Resolves with its exit code, once it has ended and everything that it printed is read. */
  ended(): Promise<number>;
  /** Ends it as an operator does and returns its exit code. */
  stop(): Promise<number>;
}

/** The key of the file, which is then removed, as an owner does who keeps the key elsewhere; null for no file. */
function takeKey(path: string | undefined): string | null {
  if (path === undefined) return null;
  const key = readFileSync(path, 'utf8').trim();
  rmSync(path);
  return key;
}

interface ChildServerOptions {
  /** The number of file descriptors that it has; by default as many as the tests. */
  readonly file_descriptors?: number;
  /** True for the embedded weights, where the answers or the time that they take matter. */
  readonly embedded?: boolean;
}

/** Starts a server on the data directory; its temporary files go to `temporary_directory`. */
export async function startChildServer(
  data_directory: string,
  temporary_directory: string,
  flags: readonly string[] = [],
  { file_descriptors, embedded = false }: ChildServerOptions = {},
): Promise<ChildServer> {
  const command = [
    ...[
      'serve',
      '--data',
      data_directory,
      '--port',
      '0',
      '--gpu',
      'none',
      '--threads',
      '1',
      '--init',
      '--json',
    ],
    ...(embedded ? [] : ['--model', TINY_WEIGHTS]),
  ];
  const limited =
    file_descriptors === undefined ? [] : ['sh', '-c', `ulimit -n ${file_descriptors}; exec "$0" "$@"`];
  const child = Bun.spawn([...limited, process.execPath, MAIN, ...command, ...flags], {
    env: { ...process.env, TMPDIR: temporary_directory, SQLITE_TMPDIR: temporary_directory },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  let printed = '';
  const started = Promise.withResolvers<void>();
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      printed += decoder.decode(chunk, { stream: true });
      if (/^\{.*"address":.*\}$/m.test(printed)) started.resolve();
    }
  };
  const ended = Promise.all([read(child.stdout), read(child.stderr)]);
  void child.exited.then(() => started.reject(new Error(`the server ended: ${printed}`)));
  await started.promise;
  const address = /"address":"([^"]+)"/.exec(printed)?.[1];
  if (address === undefined) throw new Error(`no address in ${printed}`);
  const end = async () => {
    const code = await child.exited;
    await ended;
    return code;
  };
  return {
    address,
    key: takeKey(/"api_key_file":"([^"]+)"/.exec(printed)?.[1]),
    pid: child.pid,
    output: () => printed,
    ended: end,
    stop() {
      child.kill('SIGTERM');
      return end();
    },
  };
}
