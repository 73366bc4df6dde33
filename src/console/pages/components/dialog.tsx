import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { focusContent } from '../focus-content.ts';
import { holdPage } from '../router.ts';
import { useLeaveQuestion } from '../use-leave-question.ts';
import { Form } from './form.tsx';

/**
 * The main element of a dialog: its first field, text to copy or answer. Otherwise the cross would get the
 * focus.
 */
const FIRST_FOCUSED = 'input, select, textarea, .copy-button button, .form-actions button';

interface DialogProps {
  /** Another title is another step of the dialog, whose first field is focused. */
  readonly title: string;
  readonly is_open: boolean;
  /** Called on Escape, the cross, or a click beside the dialog. */
  readonly onClose: () => void;
  /**
   * Neither Escape, a cross, a click beside the dialog nor the way back closes it, because what it shows would be
   * lost. The browser asks before it leaves the document.
   */
  readonly is_kept?: boolean;
  readonly children: ComponentChildren;
}

/**
 * A modal dialog. The browser keeps the focus within it, and gives it back afterwards. It stays while its form is sent,
 * whose failure would be told to nobody.
 */
export function Dialog({ title, is_open, onClose, is_kept = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  /** True while the pointer was pressed last beside the dialog. */
  const is_pressed = useRef(false);
  const title_id = useId();
  const isKept = () => is_kept || dialog.current?.querySelector('form[data-kept=true]') != null;
  const close = () => {
    if (!isKept()) onClose();
  };
  // A layout effect runs before the next event, so that a key that follows at once meets the dialog.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element === null || !is_open) return;
    element.showModal();
    // Also where the dialog is removed while it is open.
    return () => {
      element.close();
      // The element that opened it may be gone, such as the button of a row that was removed.
      if (document.activeElement === document.body) focusContent();
    };
  }, [is_open]);
  useLayoutEffect(() => {
    if (is_open) dialog.current?.querySelector<HTMLElement>(FIRST_FOCUSED)?.focus();
  }, [is_open, title]);
  useLayoutEffect(() => (is_open ? holdPage(isKept) : undefined), [is_open, is_kept]);
  useLeaveQuestion(is_open && is_kept);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={title_id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onKeyDown={(event) => {
        // Browsers close a dialog at the second Escape, whatever the first was answered with.
        if (event.key === 'Escape' && isKept()) event.preventDefault();
      }}
      onClose={() => {
        // Some ways back close it without asking first. A dialog that is gone was closed by its page.
        if (!is_open || dialog.current?.open !== false) return;
        if (isKept()) dialog.current.showModal();
        else onClose();
      }}
      onPointerDown={(event) => {
        is_pressed.current = event.target === dialog.current;
      }}
      onClick={(event) => {
        // Where the pointer was pressed in a field, text was selected.
        if (event.target === dialog.current && is_pressed.current) close();
      }}
    >
      {is_open && (
        <div class="dialog-content">
          <header class="dialog-header">
            <h2 id={title_id}>{title}</h2>
            {!is_kept && (
              <button type="button" class="button quiet small" aria-label="Close" onClick={close}>
                ×
              </button>
            )}
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}

interface ConfirmDialogProps {
  readonly title: string;
  readonly is_open: boolean;
  /** The action, as on the button: "Revoke key". */
  readonly action: string;
  /** Rejects with an `ApiError`, which the dialog shows. */
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly is_dangerous?: boolean;
  /** The consequences, in plain words. */
  readonly children: ComponentChildren;
}

/** A dialog that asks before an irreversible action, and closes when it is done. */
export function ConfirmDialog({
  action,
  onConfirm,
  children,
  is_dangerous = true,
  ...dialog
}: ConfirmDialogProps) {
  return (
    <Dialog {...dialog}>
      <Form
        submit={action}
        kind={is_dangerous ? 'danger' : 'primary'}
        onCancel={dialog.onClose}
        onSubmit={onConfirm}
        onDone={dialog.onClose}
      >
        {children}
      </Form>
    </Dialog>
  );
}
