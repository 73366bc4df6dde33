import { PageHeader } from './components/page-header.tsx';
import { EmptyState } from './components/states.tsx';
import { PAGES } from './pages.ts';
import { organizations } from './session.ts';

/** Where people arrive: their organizations. */
export default function Home() {
  const first_page = PAGES.find(({ audience }) => audience === 'organization');
  const all = organizations.value;
  return (
    <>
      <PageHeader title="Your organizations" />
      {all.length === 0 ? (
        <div class="panel">
          <EmptyState title="You are in no organization">
            Ask a member of one to invite you by your e-mail address.
          </EmptyState>
        </div>
      ) : (
        <ul class="panel link-list">
          {all.map(({ id, name, role }) => (
            <li key={id}>
              <a href={first_page?.path.replace(':organization_id', id) ?? '/console'}>
                <span>{name}</span>
                <span class="muted">{role}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
