/**
 * Builds llama-server from node-llama-cpp's source of llama.cpp, once for each release, in `~/.cache/tds` (or
 * `XDG_CACHE_HOME`). Needs git, cmake and a C++ compiler, and no network. Prints the path.
 *
 *   bun bench/build-llama-server.ts [jobs, default 2]
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundlePath } from '../native/addon/llama-sources.ts';
import { buildDirectory } from '../test/upstreams/llama-server-process.ts';

const jobs = Number(process.argv[2] ?? 2);
const directory = buildDirectory();
const source = join(directory, 'source');
const build = join(directory, 'build');
const program = join(build, 'bin', 'llama-server');

async function run(...words: string[]): Promise<void> {
  // Output goes to standard error, because standard output is the path.
  const code = await Bun.spawn(words, { stdout: 2, stderr: 2, stdin: 'ignore' }).exited;
  if (code !== 0) throw new Error(`${words[0]} ended with code ${code}.`);
}

if (!existsSync(program)) {
  mkdirSync(directory, { recursive: true });
  if (!existsSync(join(source, 'CMakeLists.txt'))) {
    rmSync(source, { recursive: true, force: true });
    await run('git', '-c', 'advice.detachedHead=false', 'clone', '--quiet', bundlePath(), source);
  }
  await run(
    ...['cmake', '-S', source, '-B', build, '-DCMAKE_BUILD_TYPE=Release', '-DBUILD_SHARED_LIBS=OFF'],
    // Its web page, which would be downloaded, is left out.
    ...['-DLLAMA_BUILD_UI=OFF', '-DLLAMA_USE_PREBUILT_UI=OFF', '-DLLAMA_OPENSSL=OFF'],
    ...['-DLLAMA_BUILD_TESTS=OFF', '-DLLAMA_BUILD_EXAMPLES=OFF', '-DLLAMA_BUILD_APP=OFF'],
  );
  await run('cmake', '--build', build, '--target', 'llama-server', '--parallel', String(jobs));
}
process.stdout.write(`${program}\n`);
