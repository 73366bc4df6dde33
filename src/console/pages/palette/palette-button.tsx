import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Icon } from '../components/icon.tsx';
import { showToast } from '../components/toast.tsx';
import type { Organization } from '../session.ts';
import type { Destination } from './matches.ts';

interface PaletteProps {
  readonly here: Organization | undefined;
  readonly pages: readonly Destination[];
}

/** The button and the key (Ctrl+K, or Command+K) that open the command palette, whose code is loaded by then. */
export function PaletteButton(props: PaletteProps) {
  const [is_open, setOpen] = useState(false);
  const [Palette, setPalette] =
    useState<ComponentType<PaletteProps & { readonly is_open: boolean; readonly onClose: () => void }>>();
  const open = () => {
    setOpen(true);
    import('./command-palette.tsx').then(
      ({ CommandPalette }) => setPalette(() => CommandPalette),
      () => {
        setOpen(false);
        showToast('The service cannot be reached.');
      },
    );
  };
  // A layout effect runs before the next event, so that the key works as soon as the page is drawn.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      // A dialog that is open has work in it.
      if (document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      open();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        class="button quiet palette-button"
        aria-keyshortcuts="Control+K Meta+K"
        onClick={open}
      >
        <Icon name="search" />
        <span class="visually-hidden">Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      {Palette !== undefined && <Palette {...props} is_open={is_open} onClose={() => setOpen(false)} />}
    </>
  );
}
