import { useEffect } from 'preact/hooks';
import { PageHeader } from './components/page-header.tsx';
import { Skeleton } from './components/skeleton.tsx';
import { EmptyState } from './components/states.tsx';
import { ROLE_NAMES } from './members/role-names.ts';
import { organizationPath } from './paths.ts';
import { navigate } from './router.ts';
import { lastShownOrganization, organizations } from './session.ts';

/** The first page: the reader's only organization or the one that was open last, or else a list of them. */
export default function Home() {
  const all = organizations.value;
  const opened = all.length === 1 ? all[0] : lastShownOrganization();
  const overview = opened === undefined ? null : organizationPath(opened.id, 'overview');
  useEffect(() => {
    if (overview !== null) navigate(overview, { replace: true });
  }, [overview]);
  if (overview !== null) return <Skeleton />;
  return (
    <>
      <PageHeader title="Your organizations" />
      {all.length === 0 ? (
        <div class="panel">
          <EmptyState title="You are not in an organization yet">
            Ask a member of one to invite your email address.
          </EmptyState>
        </div>
      ) : (
        <ul class="panel link-list">
          {all.map(({ id, name, role }) => (
            <li key={id}>
              <a href={organizationPath(id, 'overview')}>
                <span>{name}</span>
                <span class="muted">{ROLE_NAMES[role]}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
