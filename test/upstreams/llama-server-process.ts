import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { bundlePath } from '../../native/addon/llama-sources.ts';

const Release = Type.Object({ release: Type.String({ pattern: '^[\\w.-]+$' }) });

/** The release of llama.cpp that node-llama-cpp has its source of. */
function bundledRelease(): string {
  const file = join(dirname(bundlePath()), 'binariesGithubRelease.json');
  return Value.Parse(Release, JSON.parse(readFileSync(file, 'utf8'))).release;
}

/** Where `bench/build-llama-server.ts` builds that release. */
export function buildDirectory(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  return join(cache, 'tds', `llama-server-${bundledRelease()}`);
}

/** The llama-server to test with: that of `LLAMA_SERVER`, or the one that was built; undefined where there is none. */
export function llamaServerProgram(): string | undefined {
  const given = process.env.LLAMA_SERVER ?? '';
  if (given !== '') return given;
  const built = join(buildDirectory(), 'build', 'bin', 'llama-server');
  return existsSync(built) ? built : undefined;
}

/** A llama-server that listens. */
export interface RunningLlamaServer extends AsyncDisposable {
  readonly address: string;
}

/** Starts it on a free port with a model on the CPU, and waits until it answers. */
export async function startLlamaServer(
  program: string,
  model: string,
  words: readonly string[] = [],
): Promise<RunningLlamaServer> {
  const server = Bun.spawn(
    [
      program,
      ...['--model', model, '--host', '127.0.0.1', '--port', '0', '--n-gpu-layers', '0'],
      ...['--threads', '1', '--threads-batch', '1', '--flash-attn', 'off', '--no-warmup'],
      ...words,
    ],
    { stdout: 'ignore', stderr: 'pipe' },
  );
  const stop = async () => {
    server.kill('SIGKILL');
    await server.exited;
  };
  try {
    const address = await addressIn(server.stderr);
    return { address, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The address of the line that says it; what comes later is read and dropped, so that the server never waits. */
async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  const reader = output.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`llama-server did not start: ${text.slice(-2_000)}`);
    text += decoder.decode(value, { stream: true });
    const address = /listening on (http:\S+)/.exec(text)?.[1];
    if (address === undefined) continue;
    void drain(reader);
    return address;
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}
