/** The browser's program; null where there is none. */
export function chromiumPath(): string | null {
  return Bun.which('chromium') ?? Bun.which('chromium-browser') ?? Bun.which('google-chrome');
}
