import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Returns the paths of the CPU's backends among a process's mapped files, as in `/proc/PID/maps`. */
export function cpuLibraries(maps: string): readonly string[] {
  const paths = maps.split('\n').map((line) => line.slice(line.indexOf('/')));
  return [...new Set(paths.filter((path) => basename(path).startsWith('libggml-cpu')))];
}

/**
 * Returns the file name of the loaded variant of ggml's CPU backend. ggml loads all of them and keeps the best that the
 * CPU can run. Undefined before that, and if the system has no list.
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
