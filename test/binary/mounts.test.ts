import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { isExecutable } from '../../src/binary/mounts.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MOUNTINFO = [
  '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
  '30 22 0:26 / /tmp rw,nosuid,noexec shared:5 - tmpfs tmpfs rw',
  '31 30 0:27 / /tmp/may\\040run rw,relatime - tmpfs tmpfs rw',
  '32 22 0:28 / /srv rw,relatime - tmpfs tmpfs rw',
  '33 32 0:29 / /srv rw,noexec - tmpfs tmpfs rw',
  '',
].join('\n');

test.each([
  ['/var/cache', true],
  ['/tmp', false],
  ['/tmp/tds-1000', false],
  ['/tmp/may run/tds', true],
  ['/tmpfs', true],
  ['/srv/tds', false],
])('a library in %s can be loaded: %p', (directory, can) => {
  expect(isExecutable(directory, MOUNTINFO)).toBe(can);
});

const CAN_MOUNT =
  Bun.spawnSync(['unshare', '--user', '--map-root-user', '--mount', 'true'], { stderr: 'ignore' })
    .exitCode === 0;

describe.skipIf(!CAN_MOUNT)('a cache folder on a mount with noexec', () => {
  test('is refused by that name before anything is unpacked', () => {
    using directory = temporaryDirectory();
    const script = 'mount -t tmpfs -o noexec,mode=700 tmpfs "$1" && exec "$2" "$3" "$1"';
    const child = join(import.meta.dir, 'unpack-child.ts');
    const { stdout, exitCode } = Bun.spawnSync([
      ...['unshare', '--user', '--map-root-user', '--mount'],
      ...['sh', '-c', script, 'sh', directory.path, process.execPath, child],
    ]);
    expect(exitCode).not.toBe(0);
    expect(stdout.toString().trim()).toBe(
      `${directory.path} is on a mount with noexec, from which no library can be loaded: mount it without noexec, or name another folder with TDS_CACHE.`,
    );
  });
});
