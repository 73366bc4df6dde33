import type { ConsoleBrowser, ConsolePage, View } from '../browser.ts';
import type { Person, TestConsole } from '../people.ts';

/** A page of the console on such a screen, opened by somebody who is signed in. */
export async function openAs(
  browser: ConsoleBrowser,
  made: TestConsole,
  person: Pick<Person, 'cookie'>,
  view: View,
  path: string,
): Promise<ConsolePage> {
  const { address } = made.service.server;
  const opened = await browser.page(view);
  const cookies = person.cookie.split('; ').map((pair) => {
    const at = pair.indexOf('=');
    return { name: pair.slice(0, at), value: pair.slice(at + 1), url: `${address}/console` };
  });
  await opened.page.context().addCookies(cookies);
  await opened.page.goto(`${address}${path}`);
  return opened;
}

/** The reader comes back to the page, which asks then what has changed. */
export async function comeBack({ page }: ConsolePage): Promise<void> {
  await page.evaluate("dispatchEvent(new Event('focus'))");
}
