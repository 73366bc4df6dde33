import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { asApiError } from '../client.ts';
import { Button } from './button.tsx';

interface Toast {
  readonly id: number;
  readonly text: ComponentChildren;
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let next_id = 1;

/** Shows that something was done. A toast disappears by itself: important text belongs in a notice. */
export function showToast(text: ComponentChildren): void {
  const id = next_id++;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => close(id), SHOWN_MS);
}

/**
 * Shows what was done with something of that name. Names stand in `bdi`: one that is written from right to left moves the
 * numbers after it.
 */
export function showToastAbout(name: string, done: string): void {
  showToast(
    <>
      <bdi>{name}</bdi> {done}
    </>,
  );
}

/** Does something outside of a form; a toast shows the reason of a failure. */
export async function attempt(action: () => Promise<unknown>): Promise<void> {
  try {
    await action();
  } catch (thrown) {
    showToast(asApiError(thrown).message);
  }
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** The place of toasts. It is in the document from the start, so that screen readers follow it. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text }) => (
        <div key={id} class="toast">
          <span>{text}</span>
          <Button kind="quiet" size="small" label="Close this message" onClick={() => close(id)}>
            ×
          </Button>
        </div>
      ))}
    </div>
  );
}
