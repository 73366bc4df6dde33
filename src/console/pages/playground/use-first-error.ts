import { useEffect, useRef } from 'preact/hooks';

/** Returns the place of a form, in which the first field with an error gets the focus whenever their number changes. */
export function useFirstError(error_count: number) {
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error_count > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error_count]);
  return form;
}
