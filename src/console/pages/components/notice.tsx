import type { ComponentChildren } from 'preact';

export type Tone = 'neutral' | 'info' | 'success' | 'warning' | 'danger';

interface NoticeProps {
  readonly tone?: Tone;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** The id by which support finds the request. */
  readonly request_id?: string | null;
}

/** A message that must be read before going on. Screen readers announce a danger at once. */
export function Notice({ tone = 'info', title, children, actions, request_id }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={tone === 'danger' ? 'alert' : undefined}>
      <div class="notice-text">
        <p class="notice-title">{title}</p>
        {children !== undefined && <div class="notice-body">{children}</div>}
        {request_id != null && (
          <p class="request-id">
            Request <code>{request_id}</code>
          </p>
        )}
      </div>
      {actions !== undefined && <div class="notice-actions">{actions}</div>}
    </div>
  );
}
