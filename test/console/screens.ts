import { expect } from 'bun:test';
import { type ConsolePage, PAGE_VIEWS } from './browser.ts';

/**
 * Shows the page, which was loaded on a phone, on each screen: axe must find nothing serious there, and nothing may be
 * wider than the screen.
 */
export async function expectReadsWell(opened: ConsolePage, name: string): Promise<void> {
  for (const view of PAGE_VIEWS) {
    await opened.show(view);
    await opened.photograph(`${name}-${view.name}`);
    expect([name, view.name, await opened.seriousFindings()]).toEqual([name, view.name, []]);
    expect([name, view.name, await opened.overflows()]).toEqual([name, view.name, false]);
  }
}
