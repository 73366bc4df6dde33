import type { ComponentChildren } from 'preact';
import type { ApiError } from '../client.ts';
import type { Loaded } from '../use-loaded.ts';
import { Button, ButtonLink } from './button.tsx';
import { Notice } from './notice.tsx';
import { Skeleton } from './skeleton.tsx';

/** What stands where nothing is yet, and what to do about it. */
export function EmptyState({
  title,
  children,
  actions,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <div class="empty-state">
      <p class="empty-title">{title}</p>
      {children !== undefined && <div class="empty-text">{children}</div>}
      {actions !== undefined && <div class="empty-actions">{actions}</div>}
    </div>
  );
}

/** Something could not be loaded: why, the id of the request, and a way to try again. */
export function ErrorState({
  error,
  onRetry,
}: {
  readonly error: ApiError;
  readonly onRetry?: () => unknown;
}) {
  if (error.status === 403) return <ForbiddenState />;
  if (error.status === 404) return <NotFoundState />;
  return (
    <Notice
      tone="danger"
      title={error.message}
      request_id={error.request_id}
      actions={onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    />
  );
}

/** The reader's role does not allow this page. */
export function ForbiddenState() {
  return (
    <EmptyState title="Your role does not allow this">
      An owner or admin of the organization can give you another role.
    </EmptyState>
  );
}

/** There is no such page, or nothing that the reader may see. */
export function NotFoundState() {
  return (
    <EmptyState
      title="There is nothing here"
      actions={<ButtonLink href="/console">Go to the start</ButtonLink>}
    >
      The address is wrong, or what it names is gone or not yours to see.
    </EmptyState>
  );
}

/** What was loaded, or its skeleton, or its error. */
export function LoadedView<T>({
  loaded,
  lines,
  children,
}: {
  readonly loaded: Loaded<T>;
  /** Lines of the skeleton. */
  readonly lines?: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, error, reload } = loaded;
  return (
    <>
      {error !== undefined && <ErrorState error={error} onRetry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <Skeleton lines={lines ?? 4} />}
    </>
  );
}
