import { effect, signal } from '@preact/signals';
import { store, stored } from './browser-storage.ts';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const STORED_AS = 'tds-theme';
const system_is_dark = matchMedia('(prefers-color-scheme: dark)');
const system_dark = signal(system_is_dark.matches);

/** The reader's choice, stored in this browser. */
export const theme = signal<Theme>(storedTheme());

/** Returns true if the page is dark now, by choice or by the system. */
export function isDark(): boolean {
  return theme.value === 'system' ? system_dark.value : theme.value === 'dark';
}

/** Applies the chosen theme now and whenever it changes. */
export function startTheme(): void {
  system_is_dark.addEventListener('change', (event) => {
    system_dark.value = event.matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    store(STORED_AS, theme.value);
  });
}

function storedTheme(): Theme {
  const chosen = stored(STORED_AS);
  return THEMES.find((name) => name === chosen) ?? 'system';
}
