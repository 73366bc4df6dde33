import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** The CPU's backends among the files that a process has mapped, as `/proc/PID/maps` lists them: paths, each once. */
export function cpuLibraries(maps: string): readonly string[] {
  const paths = maps.split('\n').map((line) => line.slice(line.indexOf('/')));
  return [...new Set(paths.filter((path) => basename(path).startsWith('libggml-cpu')))];
}

/**
 * The variant of ggml's CPU backend that this process computes with, by its file's name. ggml loads all of them and
 * keeps the best that the CPU can run. Undefined before a backend is loaded, and where the system has no list.
 */
export function loadedCpuLibrary(): string | undefined {
  try {
    const [path] = cpuLibraries(readFileSync('/proc/self/maps', 'utf8'));
    return path === undefined ? undefined : basename(path);
  } catch {
    // Nothing is lost: only Linux has the list.
    return undefined;
  }
}
