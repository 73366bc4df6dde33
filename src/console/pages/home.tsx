import { PageHeader } from './components/page-header.tsx';
import { EmptyState } from './components/states.tsx';
import { organizationPath } from './page.ts';
import { organizations } from './session.ts';

/** Where people arrive: their organizations. */
export default function Home() {
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
              <a href={organizationPath(id, 'usage')}>
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
