import { api, call } from '../client.ts';
import { Section } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { Time } from '../components/time.tsx';
import { organizationPath } from '../paths.ts';
import { useLoaded } from '../use-loaded.ts';

const SHOWN = 5;

/** The newest entries of the audit log, for those who may read it. */
export function RecentChanges({ organization_id }: { readonly organization_id: string }) {
  const changes = useLoaded(
    () => call(api.organizations({ organization_id }).trail.get({ query: { limit: SHOWN } })),
    [organization_id],
  );
  return (
    <Section
      title="Recent changes"
      actions={<a href={organizationPath(organization_id, 'trail')}>Audit log</a>}
    >
      <LoadedView loaded={changes} lines={3}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">Nothing has changed yet.</p>
          ) : (
            <ul class="panel changes">
              {items.map(({ id, sentence, object_name, by, user_name, created_at_ms }) => (
                <li key={id}>
                  <span>
                    {sentence}{' '}
                    {object_name !== null && (
                      <strong>
                        <bdi>{object_name}</bdi>
                      </strong>
                    )}
                  </span>
                  <span class="muted">
                    <bdi>{user_name ?? (by === 'operator' ? 'The operator' : 'A former user')}</bdi>,{' '}
                    <Time time_ms={created_at_ms} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </LoadedView>
    </Section>
  );
}
