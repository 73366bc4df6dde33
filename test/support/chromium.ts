/**
 * The browser's program; null where there is none. Without windows (Debian's `chromium-headless-shell`) it is the same
 * engine at half the CPU time.
 */
export function chromiumPath(): string | null {
  return Bun.which('chromium-headless-shell') ?? windowedChromiumPath();
}

/** The program with windows, which alone keeps pages for the way back; null where there is none. */
export function windowedChromiumPath(): string | null {
  return Bun.which('chromium') ?? Bun.which('chromium-browser') ?? Bun.which('google-chrome');
}
