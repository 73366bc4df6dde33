import { type ComponentChildren, createContext } from 'preact';
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError } from '../client.ts';
import { Button } from './button.tsx';
import { Notice } from './notice.tsx';

interface FormState {
  readonly is_busy: boolean;
  /** Returns the server's error about a field, by the field's name. */
  readonly errorOf: (name: string) => string | undefined;
}

const Context = createContext<FormState>({ is_busy: false, errorOf: () => undefined });

/** Returns the state of the form around a field. */
export function useForm(): FormState {
  return useContext(Context);
}

interface FormProps<Done> {
  /** Rejects with an `ApiError` when it is refused: `param` names the field that shows the message. */
  readonly onSubmit: (values: FormValues) => Promise<Done>;
  /**
   * Called after `onSubmit` with its result, unless the form is gone. The late answer of a dialog that was left must not
   * close another one.
   */
  readonly onDone?: ((done: Done) => void) | undefined;
  /** The text of the button. */
  readonly submit: string;
  readonly kind?: 'primary' | 'danger';
  readonly onCancel?: () => void;
  readonly children: ComponentChildren;
  /** The names of fields in this form. An error of another field is shown above the button. */
  readonly fields?: readonly string[];
  readonly is_disabled?: boolean;
}

/** The entered values, by the names of the fields. */
export interface FormValues {
  /** Returns the text of a field, trimmed. */
  text(name: string): string;
  /** Returns the text exactly as entered, for passwords. */
  exact(name: string): string;
  isChecked(name: string): boolean;
}

/** The longest time for which a form without an answer holds its dialog: the connection may be dead. */
const HOLD_MS = 15_000;

/**
 * A form that is sent once at a time, and shows the server's errors beside their fields. While it is sent, neither
 * Cancel nor its dialog's ways out work: the answer, or why there is none, would be shown to nobody.
 */
export function Form<Done>({
  onSubmit,
  onDone,
  submit,
  kind = 'primary',
  onCancel,
  children,
  fields = [],
  is_disabled,
}: FormProps<Done>) {
  const [is_busy, setBusy] = useState(false);
  const [is_overdue, setOverdue] = useState(false);
  const is_held = is_busy && !is_overdue;
  const [error, setError] = useState<ApiError>();
  const form = useRef<HTMLFormElement>(null);
  const is_of_field = error?.param != null && fields.includes(error.param);

  useLayoutEffect(() => {
    if (!is_busy) return;
    const timer = setTimeout(() => setOverdue(true), HOLD_MS);
    return () => clearTimeout(timer);
  }, [is_busy]);

  const send = async (element: HTMLFormElement) => {
    if (is_busy) return;
    setBusy(true);
    setOverdue(false);
    setError(undefined);
    try {
      const done = await onSubmit(valuesOf(element));
      if (form.current !== null) onDone?.(done);
    } catch (thrown) {
      const failure = asApiError(thrown);
      setError(failure);
      const field = failure.param === null ? null : element.elements.namedItem(failure.param);
      if (field instanceof HTMLElement) field.focus();
    } finally {
      setBusy(false);
    }
  };

  return (
    <Context.Provider
      value={{
        is_busy,
        errorOf: (name) => (is_of_field && error?.param === name ? error.message : undefined),
      }}
    >
      <form
        ref={form}
        class="form"
        data-kept={is_held}
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        {children}
        {error !== undefined && !is_of_field && (
          <Notice tone="danger" title={error.message} request_id={error.request_id} />
        )}
        <div class="form-actions">
          {onCancel !== undefined && (
            <Button onClick={onCancel} is_disabled={is_held}>
              Cancel
            </Button>
          )}
          <Button type="submit" kind={kind} is_busy={is_busy} is_disabled={is_disabled ?? false}>
            {submit}
          </Button>
        </div>
      </form>
    </Context.Provider>
  );
}

function valuesOf(form: HTMLFormElement): FormValues {
  const values = new FormData(form);
  const exact = (name: string) => {
    const value = values.get(name);
    return typeof value === 'string' ? value : '';
  };
  return { exact, text: (name) => exact(name).trim(), isChecked: (name) => values.has(name) };
}
