import { expect, test } from 'bun:test';
import { join } from 'node:path';

test('signals during the start of the executable are those of the service that then listens, each once', async () => {
  await using child = Bun.spawn([process.execPath, join(import.meta.dir, 'held-signals-child.ts')], {
    stdin: 'pipe',
    stdout: 'pipe',
  });
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  /** Resolves with the output once it has that many lines more. */
  const read = async (lines: number): Promise<string> => {
    let text = '';
    while (text.split('\n').length <= lines) {
      const { value, done } = await output.read();
      if (done) throw new Error(`it ended after ${text}`);
      text += value;
    }
    return text;
  };
  expect(await read(1)).toBe('held\n');
  child.kill('SIGHUP');
  child.kill('SIGTERM');
  child.stdin.write('\n');
  await child.stdin.flush();
  expect((await read(2)).split('\n').sort()).toEqual(['', 'SIGHUP', 'SIGTERM']);
  child.kill('SIGHUP');
  expect(await read(1)).toBe('SIGHUP\n');
  child.kill('SIGKILL');
});
