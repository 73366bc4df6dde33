/**
 * Measures the time from the navigation to the first chart of the console's usage page, with many usage rows. It runs
 * headless Chromium on the same machine, and also reports the loaded files.
 *
 *   bun bench/console-usage.ts [--requests 100000] [--rounds 5]
 *
 * Prints a JSON line for each view: medians, minima and maxima in milliseconds, with an empty and a full browser cache.
 * It adds the CPU time of service and browser, because wall time means little on a busy machine.
 */
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../src/access/actor.ts';
import { createKey } from '../src/accounts/keys.ts';
import { DAY_MS } from '../src/time/clock.ts';
import { ConsoleBrowser, DESKTOP } from '../test/console/browser.ts';
import { carrySession } from '../test/console/pages/visitor.ts';
import { addPerson, startTestConsole } from '../test/console/people.ts';
import { addUsage } from '../test/console/usage-rows.ts';
import { chromiumPath } from '../test/support/chromium.ts';
import { cpuTime_ms } from './support/cpu-time.ts';
import { median, report, rounded } from './support/statistics.ts';

const DAYS = 60;
const VIEWS = { '7 days': '', 'all 60 days': '?span=all', '90 days, fast mode': '?span=quarter&mode=fast' };

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '100000' }, rounds: { type: 'string', default: '5' } },
});
const program = chromiumPath();
if (program === null) throw new Error('There is no chromium.');

/** Returns the milliseconds from the navigation to the first content, and to the first chart. */
async function shown(page: Page, address: string) {
  const before_ms = cpuTime_ms(process.pid);
  await page.goto(address, { waitUntil: 'commit' });
  await page.locator('.u-over').first().waitFor();
  const chart_ms = Number(await page.evaluate('performance.now()'));
  const used_ms = cpuTime_ms(process.pid) - before_ms;
  await page.getByRole('region', { name: 'Requests' }).waitFor();
  const table_ms = Number(await page.evaluate('performance.now()'));
  const loaded = await page.evaluate(
    `performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
      .filter(({ name }) => !name.includes('/console/api/')).reduce((sum, { transferSize }) => sum + transferSize, 0)`,
  );
  const data = await page.evaluate(
    `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/console/api/'))
      .reduce((sum, { transferSize }) => sum + transferSize, 0)`,
  );
  return { chart_ms, used_ms, table_ms, page_bytes: Number(loaded), data_bytes: Number(data) };
}

const made = await startTestConsole();
const browser = await ConsoleBrowser.open(program);
try {
  const person = await addPerson(made, { email: 'ada@example.com' });
  const { id: api_key_id } = await createKey(made.service.accounts, OPERATOR, {
    project_id: person.default_project_id,
    name: 'Production',
  });
  const now_ms = Date.now();
  addUsage(made.service.db, {
    organization_id: person.organization_id,
    project_id: person.default_project_id,
    api_key_id,
    requests: Number(values.requests),
    from_ms: now_ms - DAYS * DAY_MS,
    to_ms: now_ms,
  });
  for (const [view, query] of Object.entries(VIEWS)) {
    const address = `${made.service.server.address}/console/o/${person.organization_id}/usage${query}`;
    const first: Awaited<ReturnType<typeof shown>>[] = [];
    const again: typeof first = [];
    for (let round = 0; round < Number(values.rounds); round += 1) {
      await using opened = await browser.page(DESKTOP);
      await carrySession(opened, made, person);
      first.push(await shown(opened.page, address));
      again.push(await shown(opened.page, address));
    }
    for (const [visit, times] of Object.entries({ first, again })) {
      const chart_ms = times.map((time) => time.chart_ms);
      report({
        view,
        visit,
        chart_ms: rounded(median(chart_ms)),
        chart_min_ms: rounded(Math.min(...chart_ms)),
        chart_max_ms: rounded(Math.max(...chart_ms)),
        cpu_ms: rounded(median(times.map((time) => time.used_ms))),
        table_ms: rounded(median(times.map((time) => time.table_ms))),
        page_bytes: times[0]?.page_bytes,
        data_bytes: times[0]?.data_bytes,
      });
    }
  }
} finally {
  await browser[Symbol.asyncDispose]();
  await made.close();
}
