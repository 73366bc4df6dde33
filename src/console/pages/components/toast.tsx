import { signal } from '@preact/signals';
import { asApiError } from '../client.ts';
import { Button } from './button.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let next_id = 1;

/** Says that something was done. It goes by itself: what must be read belongs into a notice. */
export function showToast(text: string): void {
  const id = next_id++;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => close(id), SHOWN_MS);
}

/** Does something that no form is around: a toast says why it failed. */
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

/** Where toasts appear; once in the document, from its start on, so that screen readers follow it. */
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
