import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiError } from '../client.ts';
import type { Loaded } from '../use-loaded.ts';
import { Button, ButtonLink } from './button.tsx';
import { Notice } from './notice.tsx';
import { useTitle } from './page-header.tsx';
import { Skeleton } from './skeleton.tsx';

/** The content of an empty page or list, with advice. */
export function EmptyState({
  title,
  children,
  actions,
  is_page = false,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** True where it is the whole page: it has its `h1` and its title. */
  readonly is_page?: boolean;
}) {
  useTitle(is_page ? title : undefined);
  return (
    <div class="empty-state">
      {is_page ? <h1>{title}</h1> : <p class="empty-title">{title}</p>}
      {children !== undefined && <div class="empty-text">{children}</div>}
      {actions !== undefined && <div class="empty-actions">{actions}</div>}
    </div>
  );
}

/** A failed load: the reason, the id of the request, and a way to retry. */
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
      actions={onRetry !== undefined && <RetryButton onRetry={onRetry} />}
    />
  );
}

/** The failure stays beside it until the answer is there. */
function RetryButton({ onRetry }: { readonly onRetry: () => unknown }) {
  const [is_busy, setBusy] = useState(false);
  const retry = async () => {
    setBusy(true);
    await onRetry();
    setBusy(false);
  };
  return (
    <Button is_busy={is_busy} onClick={retry}>
      Try again
    </Button>
  );
}

/** The reader's role does not allow this page. */
export function ForbiddenState({ is_page = false }: { readonly is_page?: boolean }) {
  return (
    <EmptyState title="Your role does not allow this" is_page={is_page}>
      An owner of the organization can give you another role.
    </EmptyState>
  );
}

/** A missing page, or one that the reader may not see. */
export function NotFoundState({ is_page = false }: { readonly is_page?: boolean }) {
  return (
    <EmptyState
      title="There is nothing here"
      is_page={is_page}
      actions={<ButtonLink href="/console">Go to the start</ButtonLink>}
    >
      The address is wrong, or you may not see what is here.
    </EmptyState>
  );
}

/** The loaded content, or its skeleton, or its error. */
export function LoadedView<T>({
  loaded,
  lines,
  children,
}: {
  readonly loaded: Loaded<T>;
  /** The lines of the skeleton. */
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
