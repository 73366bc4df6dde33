import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface MenuProps {
  /** The content of the button. */
  readonly button: ComponentChildren;
  /** The accessible text before the button's. */
  readonly label?: string;
  readonly is_at_end?: boolean;
  /** Called after it was opened or closed. */
  readonly onToggle?: (is_open: boolean) => void;
  /** Links and buttons; the menu closes when one is chosen. */
  readonly children: ComponentChildren;
}

/** A button that opens a short list of links and buttons. Escape and a click elsewhere close it. */
export function Menu({ button, label, is_at_end = false, onToggle, children }: MenuProps) {
  const [is_open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => onToggle?.(is_open), [is_open]);
  // A layout effect runs before the next event, so that the menu already listens for a key that follows at
  // once.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!is_open || element === null) return;
    const closeElsewhere = (event: Event) => {
      if (!(event.target instanceof Node) || !element.contains(event.target)) setOpen(false);
    };
    const closeWhenChosen = (event: Event) => {
      const chosen = event.target instanceof Element ? event.target.closest('a, button') : null;
      if (chosen !== null && chosen !== opener.current) setOpen(false);
    };
    const followKeys = (event: KeyboardEvent) => {
      if (event.key === 'Escape') {
        setOpen(false);
        opener.current?.focus();
      }
      const is_radio = event.target instanceof HTMLInputElement;
      if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && !is_radio) {
        event.preventDefault();
        moveFocus(element, event.key === 'ArrowDown' ? 1 : -1);
      }
    };
    document.addEventListener('pointerdown', closeElsewhere);
    document.addEventListener('focusin', closeElsewhere);
    element.addEventListener('click', closeWhenChosen);
    element.addEventListener('keydown', followKeys);
    return () => {
      document.removeEventListener('pointerdown', closeElsewhere);
      document.removeEventListener('focusin', closeElsewhere);
      element.removeEventListener('click', closeWhenChosen);
      element.removeEventListener('keydown', followKeys);
    };
  }, [is_open]);
  return (
    <div ref={frame} class="menu">
      <button
        ref={opener}
        type="button"
        class="button quiet menu-button"
        aria-expanded={is_open}
        aria-controls={id}
        onClick={() => setOpen(!is_open)}
      >
        {label !== undefined && <span class="visually-hidden">{label}: </span>}
        {button}
        <svg class="chevron" viewBox="0 0 12 12" aria-hidden="true">
          <path d="M3 4.5 6 7.5 9 4.5" />
        </svg>
      </button>
      <div id={id} class={is_at_end ? 'menu-list at-end' : 'menu-list'} hidden={!is_open}>
        {children}
      </div>
    </div>
  );
}

function moveFocus(frame: HTMLElement, step: number): void {
  const items = [...frame.querySelectorAll<HTMLElement>('.menu-list a, .menu-list button')];
  const at = items.indexOf(document.activeElement instanceof HTMLElement ? document.activeElement : frame);
  items[(at + step + items.length) % items.length]?.focus();
}
