import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Tests the built executable in an empty root: in its own namespaces, without a network and with private mounts. Fails
 * if the system permits no such namespaces, unless `TDS_ALLOW_SKIP=1` is set.
 */

const NAMESPACES = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  '--mount',
  '--net',
  '--propagation=private',
];
const TEST = join(import.meta.dir, 'executable.test.ts');

const root = mkdtempSync(join(tmpdir(), 'tds-root-'));
try {
  const unshare = Bun.which('unshare');
  const tried =
    unshare === null
      ? 'there is no unshare'
      : Bun.spawnSync(
          [unshare, ...NAMESPACES, 'sh', '-c', `mount -t tmpfs tmpfs '${root}' && chroot / true`],
          {
            env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
          },
        ).stderr.toString();
  if (unshare === null || tried !== '') {
    console.log(`SKIPPED: the executable was not tested in an empty root: ${tried.trim()}.`);
    if (process.env.TDS_ALLOW_SKIP !== '1') process.exitCode = 1;
  } else {
    const child = Bun.spawn([unshare, ...NAMESPACES, process.execPath, 'test', TEST, '--timeout', '300000'], {
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin`, TDS_TEST_ROOT: root },
      stdout: 'inherit',
      stderr: 'inherit',
    });
    process.exitCode = await child.exited;
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
