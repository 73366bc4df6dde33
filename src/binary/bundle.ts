import { PROJECT_ROOT, projectFile } from '../files/project-root.ts';

/** Not bundled, because it finds its libraries relative to its own files. */
export const UNBUNDLED = 'node-llama-cpp';

/** Returns the program and every worker, which is started by its own path. Those of the pages run in the browser. */
async function entryPoints(): Promise<string[]> {
  const found = await Array.fromAsync(new Bun.Glob('{src,db,native}/**/*-worker.ts').scan(PROJECT_ROOT));
  const workers = found.filter((path) => !path.startsWith('src/console/pages/'));
  return ['src/main.ts', ...workers.sort()].map(projectFile);
}

/** Bundles the program into a folder, as `src/main.js`. */
export async function bundleProgram(folder: string): Promise<Bun.BuildOutput> {
  const built = await Bun.build({
    entrypoints: await entryPoints(),
    root: PROJECT_ROOT,
    outdir: folder,
    target: 'bun',
    splitting: true,
    metafile: true,
    external: [UNBUNDLED],
    throw: false,
  });
  if (!built.success) throw new AggregateError(built.logs, 'The program cannot be bundled.');
  return built;
}
