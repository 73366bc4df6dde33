/**
 * Makes README's pictures of the console: `bun run pictures`. A real service answers the playground's first example, and
 * the usage is that of four made-up weeks with nights and weekends.
 */
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { chromiumPath } from '../support/chromium.ts';
import { ConsoleBrowser } from './browser.ts';
import { addPerson, PASSWORD, startTestConsole } from './people.ts';
import { addUsage } from './usage-rows.ts';

const SCREEN = { name: 'readme', width: 1280, height: 800, theme: 'light' } as const;
const HOUR_MS = DAY_MS / 24;
const DAYS = 28;
const CREDIT_MICROS = 25_000_000;

const program = chromiumPath();
if (program === null) throw new Error('There is no chromium.');
const made = await startTestConsole({ embedded: true, cold: false });
const { accounts, clock, db, server } = made.service;
const ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
const { organization_id, default_project_id: project_id } = ada;
await creditByHand(accounts, OPERATOR, { organization_id, amount_micros: CREDIT_MICROS });
const { id: api_key_id } = await createKey(accounts, OPERATOR, { project_id, name: 'Support inbox' });
const now_ms = clock.now_ms();
for (let from_ms = now_ms - DAYS * DAY_MS; from_ms < now_ms - HOUR_MS; from_ms += HOUR_MS) {
  const requests = requestsOf(new Date(from_ms));
  addUsage(db, { organization_id, project_id, api_key_id, requests, from_ms, to_ms: from_ms + HOUR_MS });
}

await using browser = await ConsoleBrowser.open(program);
await using opened = await browser.page(SCREEN);
const { page } = opened;
const at = (name: string) => `/console/o/${organization_id}/${name}`;
await page.goto(`${server.address}/console/sign-in?return=${encodeURIComponent(at('playground'))}`);
await page.getByLabel('Email address').fill(ada.email);
await page.getByLabel('Password').fill(PASSWORD);
await page.getByRole('button', { name: 'Sign in' }).click();
await page.getByText('Both', { exact: true }).click();
await page.getByRole('button', { name: 'Run', exact: true }).click();
await page.getByText('The answers are there').waitFor();
await picture('playground');
await page.goto(`${server.address}${at('usage')}`);
await page.getByLabel('Model').waitFor();
await picture('usage');
await made.close();

async function picture(name: string): Promise<void> {
  await page.evaluate('document.activeElement?.blur()');
  await page.screenshot({ path: projectFile(`.github/${name}.png`), animations: 'disabled' });
}

/** More by day than by night, and few at weekends. */
function requestsOf(hour: Date): number {
  const by_hour = 1 + Math.sin(((hour.getUTCHours() - 8) / 24) * 2 * Math.PI);
  const is_weekend = hour.getUTCDay() % 6 === 0;
  return Math.round(4 + (is_weekend ? 12 : 60) * by_hour + (hour.getUTCDate() % 5) * 3);
}
