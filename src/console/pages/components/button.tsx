import type { ComponentChildren } from 'preact';

export interface ButtonProps {
  readonly children: ComponentChildren;
  /** `primary` once on a page; `danger` for irreversible actions; `quiet` within tables and bars. */
  readonly kind?: 'primary' | 'secondary' | 'danger' | 'quiet';
  readonly size?: 'small' | 'normal';
  readonly type?: 'button' | 'submit';
  readonly is_busy?: boolean;
  readonly is_disabled?: boolean;
  /** The accessible name where the visible text is too short, such as an icon. */
  readonly label?: string;
  readonly title?: string;
  readonly onClick?: (event: MouseEvent) => unknown;
}

/** A button. While it is busy it keeps its place and its focus, and ignores clicks. */
export function Button({
  children,
  kind = 'secondary',
  size = 'normal',
  type = 'button',
  is_busy = false,
  is_disabled = false,
  label,
  title,
  onClick,
}: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${kind} ${size}`}
      disabled={is_disabled}
      aria-disabled={is_busy ? 'true' : undefined}
      aria-busy={is_busy ? 'true' : undefined}
      aria-label={label}
      title={title}
      onClick={(event) => {
        if (is_busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {is_busy && <span class="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** A link to another page that looks like a button. */
export function ButtonLink({
  href,
  kind = 'secondary',
  download,
  children,
}: Pick<ButtonProps, 'children' | 'kind'> & { readonly href: string; readonly download?: string }) {
  return (
    <a class={`button ${kind} normal`} href={href} download={download}>
      {children}
    </a>
  );
}
