import type { Locator, Page } from 'playwright-core';

/** More stops than the longest page has. */
const TABS_MAX = 80;

/** Presses Tab until the element has the focus. Throws where no Tab reaches it. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < TABS_MAX; presses += 1) {
    if ((await target.and(page.locator(':focus')).count()) === 1) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`no Tab reaches ${target}`);
}

/** Reaches the element by Tab, and presses Enter on it. */
export async function pressOn(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

/** Writes into the fields, in their order, in the place of what is there. */
export async function typeInto(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [label, text] of Object.entries(fields)) {
    await tabTo(page, page.locator('input, textarea').and(page.getByLabel(label, { exact: true })));
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
  }
}

/** Writes into the fields, in their order, and sends the form with Enter. */
export async function typeForm(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  await typeInto(page, fields);
  await page.keyboard.press('Enter');
}

/**
 * Chooses an option of a select by the arrows. Letters would begin another search where they come too slowly.
 */
export async function choose(page: Page, select: Locator, option: string): Promise<void> {
  await tabTo(page, select);
  await page.keyboard.press('Home');
  for (const _ of await select.locator('option').all()) {
    if ((await select.locator('option:checked').textContent()) === option) return;
    await page.keyboard.press('ArrowDown');
  }
  throw new Error(`no arrow reaches ${option}`);
}
