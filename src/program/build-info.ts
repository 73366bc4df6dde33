import { existsSync, readFileSync } from 'node:fs';
import { version } from '../../package.json' with { type: 'json' };
import { BUILD_FILE, PROJECT_ROOT } from '../files/project-root.ts';

/** The version of this program, which databases record as their writer's. */
export const PROGRAM_VERSION = version;

/** The version of this program, and the commit that it was made from. */
export interface BuildInfo {
  readonly version: string;
  /**
   * The abbreviated git commit, with `-dirty` where files differed from it; `unknown` outside of a
   * repository.
   */
  readonly commit: string;
}

/** Describes the git checkout of this program. */
function describeCheckout(): string {
  const git = Bun.which('git');
  if (git === null) return 'unknown';
  const asked = Bun.spawnSync([git, 'describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'], {
    cwd: PROJECT_ROOT,
    stderr: 'ignore',
  });
  return asked.success ? asked.stdout.toString().trim() : 'unknown';
}

/** Returns the version and commit that the executable was built from, or those of the checkout. */
export function buildInfo(): BuildInfo {
  if (!existsSync(BUILD_FILE)) return { version, commit: describeCheckout() };
  const { commit }: Pick<BuildInfo, 'commit'> = JSON.parse(readFileSync(BUILD_FILE, 'utf8'));
  return { version, commit };
}
