import { useInbox } from './use-inbox.ts';

/** The number of things that wait for the operator, in the navigation; nothing where there is none. */
export function InboxCount() {
  const count = useInbox().data?.count ?? 0;
  if (count === 0) return null;
  return (
    <span class="side-count">
      {count}
      <span class="visually-hidden"> waiting</span>
    </span>
  );
}
