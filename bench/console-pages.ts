/**
 * Measures the first visit of each of the console's pages by a browser that has seen none of them: first paint, largest
 * paint, and compressed bytes. The organization has 200 keys, half of them revoked, 50 projects and 100,000 usage rows.
 *
 *   bun bench/console-pages.ts [--beside <another checkout>] [--pages <part of a path>] [--requests 100000] [--rounds 7]
 *
 * Prints a JSON line for each page: medians in milliseconds, and bytes. With `--beside`, the other checkout's service has
 * the same rows in the same run, the two take turns, and each page that both have gets a line of each.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { projectFile } from '../src/files/project-root.ts';
import { DAY_MS } from '../src/time/clock.ts';
import { ConsoleBrowser, DESKTOP } from '../test/console/browser.ts';
import { carrySession } from '../test/console/pages/visitor.ts';
import type { Person, TestConsole } from '../test/console/people.ts';
import { chromiumPath } from '../test/support/chromium.ts';
import { median, report, rounded } from './support/statistics.ts';

const DAYS = 60;
const KEYS = 200;
const PROJECTS = 50;

const { values } = parseArgs({
  options: {
    beside: { type: 'string' },
    pages: { type: 'string', default: '' },
    requests: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '7' },
  },
});
const program = chromiumPath();
if (program === null) throw new Error('There is no chromium.');

/** A service of one checkout, and somebody who is signed in at it. */
interface Version {
  readonly name: string;
  readonly made: TestConsole;
  readonly person: Person;
}

/** Starts the service of a checkout, by its own code, on the rows that every version gets. */
async function start(name: string, folder: string): Promise<Version> {
  const people: typeof import('../test/console/people.ts') = await import(
    join(folder, 'test/console/people.ts')
  );
  const rows: typeof import('../test/console/usage-rows.ts') = await import(
    join(folder, 'test/console/usage-rows.ts')
  );
  const made = await people.startTestConsole();
  const person = await people.addPerson(made, { email: 'ada@example.com', is_operator: true });
  const { organization_id } = person;
  const { db, clock } = made.service;
  const now_ms = clock.now_ms();
  const project = db.$client.query(
    'INSERT INTO projects (id, organization_id, name, created_at_ms) VALUES ($id, $organization_id, $name, $now_ms)',
  );
  for (let n = 1; n < PROJECTS; n += 1) {
    project.run({ id: `prj_${n}`, organization_id, name: `Project ${n}`, now_ms });
  }
  const key = db.$client.query(
    `INSERT INTO api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms, last_used_at_ms,
      revoked_at_ms) VALUES ($id, $project_id, $name, $id, 'sk_0123', $now_ms, $now_ms, $revoked_at_ms)`,
  );
  for (let n = 0; n < KEYS; n += 1) {
    const project_id = n % PROJECTS === 0 ? person.default_project_id : `prj_${n % PROJECTS}`;
    const id = `key_${n}`;
    const revoked_at_ms = n % 2 === 0 ? null : now_ms;
    key.run({ id, project_id, name: `Key ${n}`, now_ms, revoked_at_ms });
    const requests = Math.round(Number(values.requests) / KEYS);
    const span = { from_ms: now_ms - DAYS * DAY_MS, to_ms: now_ms };
    rows.addUsage(db, { organization_id, project_id, api_key_id: id, requests, ...span });
  }
  return { name, made, person };
}

/** Returns the paths of a checkout's pages that need no further id than that of the organization. */
async function pathsOf(folder: string): Promise<readonly string[]> {
  const source = await Bun.file(join(folder, 'src/console/pages/pages.ts')).text();
  return [...source.matchAll(/path: '([^']+)'/g)]
    .map(([, path = '']) => path)
    .filter((path) => path !== '/console' && !path.startsWith('/console/operator/organizations/'))
    .filter((path) => path.includes(values.pages));
}

const IS_DATA = `name.includes('/console/api/')`;

/** Visits a page in a browser profile of its own. */
async function visited(browser: ConsoleBrowser, { made, person }: Version, path: string) {
  await using opened = await browser.page(DESKTOP);
  const { page } = opened;
  if (path.startsWith('/console/o/') || path.startsWith('/console/operator/') || path.endsWith('account')) {
    await carrySession(opened, made, person);
  }
  const shown = path.replace(':organization_id', person.organization_id);
  await page.goto(`${made.service.server.address}${shown}`, { waitUntil: 'networkidle' });
  await page.getByRole('heading', { level: 1 }).or(page.locator('.empty-state')).first().waitFor();
  const sum = (condition: string) =>
    numberOf(
      page,
      `performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
        .filter(({ name }) => ${condition}).reduce((sum, { transferSize }) => sum + transferSize, 0)`,
    );
  return {
    first_ms: await numberOf(page, `performance.getEntriesByName('first-contentful-paint')[0].startTime`),
    largest_ms: await numberOf(
      page,
      `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
        .observe({ type: 'largest-contentful-paint', buffered: true }))`,
    ),
    page_bytes: await sum(`!${IS_DATA}`),
    data_bytes: await sum(IS_DATA),
  };
}

async function numberOf(page: Page, expression: string): Promise<number> {
  return Number(await page.evaluate(expression));
}

const versions = [await start('this', projectFile('.'))];
if (values.beside !== undefined) versions.push(await start('beside', values.beside));
const browser = await ConsoleBrowser.open(program);
try {
  const others = values.beside === undefined ? [] : await pathsOf(values.beside);
  // The first visit of all bundles the pages.
  for (const version of versions) await visited(browser, version, '/console/sign-in');
  for (const path of await pathsOf(projectFile('.'))) {
    const compared = versions.filter(({ name }) => name === 'this' || others.includes(path));
    const visits = compared.map((version) => ({
      version,
      seen: [] as Awaited<ReturnType<typeof visited>>[],
    }));
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const { version, seen } of round % 2 === 0 ? visits : visits.toReversed()) {
        seen.push(await visited(browser, version, path));
      }
    }
    for (const { version, seen } of visits) {
      const of = (read: (visit: (typeof seen)[number]) => number) => rounded(median(seen.map(read)));
      report({
        path,
        version: version.name,
        first_paint_ms: of(({ first_ms }) => first_ms),
        largest_paint_ms: of(({ largest_ms }) => largest_ms),
        page_bytes: seen[0]?.page_bytes,
        data_bytes: seen[0]?.data_bytes,
      });
    }
  }
} finally {
  await browser[Symbol.asyncDispose]();
  for (const { made } of versions) await made.close();
}
