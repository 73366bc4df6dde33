import { afterAll, beforeAll, describe } from 'bun:test';
import { chromiumPath } from '../support/chromium.ts';
import { startTestConsole, type TestConsole } from './people.ts';

const has_browser = chromiumPath() !== null;
if (!has_browser)
  console.log('The browser tests are skipped: there is no chromium (apt-get install chromium).');

/** Describes pages as a real browser shows them. Without a browser its tests are skipped. */
export const describeInBrowser = describe.skipIf(!has_browser);

/** A console that is started before the tests of the calling `describe`, and closed after them. */
export function consoleInBrowser(...options: Parameters<typeof startTestConsole>): TestConsole {
  let made: TestConsole | undefined;
  const started = () => {
    if (made === undefined) throw new Error('only tests, and hooks before them, can use the console');
    return made;
  };
  beforeAll(async () => {
    made = await startTestConsole(...options);
  });
  afterAll(() => made?.close());
  return {
    get service() {
      return started().service;
    },
    get mails() {
      return started().mails;
    },
    get origin() {
      return started().origin;
    },
    close: () => started().close(),
  };
}
