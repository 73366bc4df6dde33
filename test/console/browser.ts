import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { projectFile } from '../../src/files/project-root.ts';
import { chromiumPath } from '../support/chromium.ts';
import { guardFolder } from '../support/guard-folder.ts';

/** A screen on which every page must read well. */
export interface View {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly theme: 'light' | 'dark';
}

export const PHONE = { name: 'phone-light', width: 390, height: 844, theme: 'light' } as const;
export const DESKTOP = { name: 'desktop-light', width: 1280, height: 860, theme: 'light' } as const;

export const DESKTOP_DARK = { ...DESKTOP, name: 'desktop-dark', theme: 'dark' } as const;

/** A phone and a desk, light and dark. */
export const VIEWS: readonly View[] = [
  PHONE,
  { ...PHONE, name: 'phone-dark', theme: 'dark' },
  DESKTOP,
  DESKTOP_DARK,
];

/**
 * The screens on which each page is looked at: each width and each theme once, because all components are in the
 * gallery, which is looked at on all screens. Pictures are taken of all.
 */
export const PAGE_VIEWS: readonly View[] =
  process.env.TDS_PHOTOGRAPHS === undefined ? [PHONE, DESKTOP_DARK] : VIEWS;

/** How long anything of a page is waited for. A wait that a machine's other work made too long would say nothing of the page. */
const WAIT_MAX_MS = 60_000;

/** Nothing is drawn by a GPU, so its process would only cost CPU time. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--in-process-gpu', '--disable-dev-shm-usage'];

const TWO_FRAMES = 'new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(() => seen())))';

const Findings = Type.Object({
  violations: Type.Array(
    Type.Object({
      id: Type.String(),
      impact: Type.Union([Type.String(), Type.Null()]),
      help: Type.String(),
      nodes: Type.Array(Type.Object({ html: Type.String(), target: Type.Array(Type.Unknown()) })),
    }),
  ),
});

let shared: Promise<ConsoleBrowser> | undefined;

/** One real browser; each page that it opens has cookies and storage of its own. */
export class ConsoleBrowser implements AsyncDisposable {
  private constructor(private readonly browser: Browser) {}

  /**
   * Starts the browser's program (`chromiumPath` of `test/support/chromium.ts`). By default it reloads a page on the
   * way back. With `keeps_pages` it may restore it, as ordinary browsers do; that needs `windowedChromiumPath`.
   */
  static async open(program: string, { keeps_pages = false } = {}): Promise<ConsoleBrowser> {
    const options = { executablePath: program, args: FLAGS };
    const ignoreDefaultArgs = keeps_pages ? ['--disable-back-forward-cache'] : [];
    return new ConsoleBrowser(await chromium.launch({ ...options, ignoreDefaultArgs }));
  }

  /** The one browser without windows of this test process, which ends it. One that ended before is started anew. */
  static shared(): Promise<ConsoleBrowser> {
    const before = shared;
    shared = (async () => {
      // One that could not be started is tried again.
      const opened = await before?.catch(() => undefined);
      return opened?.browser.isConnected() === true ? opened : await openUntilExit();
    })();
    return shared;
  }

  /** A new page on such a screen, of a reader in that time zone. */
  async page({ width, height, theme }: View, time_zone = 'UTC'): Promise<ConsolePage> {
    const context = await this.browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      locale: 'en-US',
      timezoneId: time_zone,
      reducedMotion: 'reduce',
    });
    context.setDefaultTimeout(WAIT_MAX_MS);
    return new ConsolePage(context, await context.newPage());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
  }
}

/** A new page of the shared browser on such a screen, of a reader in that time zone. */
export async function openPage(view: View, time_zone?: string): Promise<ConsolePage> {
  const browser = await ConsoleBrowser.shared();
  return await browser.page(view, time_zone);
}

/** Opens a browser whose files are removed after this process, of whose end the test runner tells nobody. */
async function openUntilExit(): Promise<ConsoleBrowser> {
  const program = chromiumPath();
  if (program === null) throw new Error('There is no chromium.');
  const folder = mkdtempSync(join(tmpdir(), 'tds-browser-'));
  // The browser ends with this process, within moments.
  guardFolder(folder, ['sleep', '5']);
  // Playwright takes no other word on where the profile lies. Nothing else may make temporary files meanwhile.
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    return await ConsoleBrowser.open(program);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

/** A page, and what the browser says about it. */
export class ConsolePage implements AsyncDisposable {
  /** Uncaught errors, refusals by the content security policy, and loads that failed. */
  readonly complaints: string[] = [];

  constructor(
    private readonly context: BrowserContext,
    readonly page: Page,
  ) {
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(`${message.text()} ${message.location().url}`);
    });
  }

  /** Shows the page on that screen from now on, as if its reader had turned to it. */
  async show({ width, height, theme }: View): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme: theme });
    // Charts observe their own size; they have been drawn again by then.
    await evaluate(this.context, this.page, TWO_FRAMES);
  }

  /** Resolves with axe's serious and critical findings on the current page: each as its rule and element. */
  async seriousFindings(): Promise<readonly string[]> {
    await evaluate(this.context, this.page, await axe());
    const { violations } = checked(
      Findings,
      await evaluate(
        this.context,
        this.page,
        `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => ({
          violations: violations.map(({ id, impact, help, nodes }) => ({
            id, impact: impact ?? null, help, nodes: nodes.map(({ html, target }) => ({ html, target })),
          })),
        }))`,
      ),
    );
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`));
  }

  /** Resolves with true if the page is wider than the screen, so that a phone would scroll sideways. */
  async overflows(): Promise<boolean> {
    const width = await evaluate(this.context, this.page, 'document.documentElement.scrollWidth');
    return Number(width) > (this.page.viewportSize()?.width ?? 0);
  }

  /** Photographs the whole page into the folder that `TDS_PHOTOGRAPHS` names. Without one it does nothing. */
  async photograph(name: string): Promise<void> {
    const directory = process.env.TDS_PHOTOGRAPHS;
    if (directory === undefined) return;
    await this.page.screenshot({
      path: join(directory, `${name}.png`),
      fullPage: true,
      animations: 'disabled',
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }
}

let axe_source: Promise<string> | undefined;

function axe(): Promise<string> {
  axe_source ??= Bun.file(projectFile('node_modules/axe-core/axe.min.js')).text();
  return axe_source;
}

/** The value of an expression, evaluated as the developer tools do it: the pages' own policy forbids added scripts. */
async function evaluate(context: BrowserContext, page: Page, expression: string): Promise<unknown> {
  const devtools = await context.newCDPSession(page);
  try {
    const { result, exceptionDetails } = await devtools.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
    return result.value;
  } finally {
    await devtools.detach();
  }
}

function checked<T extends TSchema>(schema: T, value: unknown): Static<T> {
  if (!Value.Check(schema, value)) throw new Error(`axe said ${JSON.stringify(value)?.slice(0, 200)}`);
  return value;
}
