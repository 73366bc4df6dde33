import { api, call } from '../client.ts';
import { Meter, NEAR_SHARE } from '../components/meter.tsx';
import { Section } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { formatMoney } from '../format.ts';
import { organizationPath } from '../page.ts';
import { useLoaded } from '../use-loaded.ts';

/** The projects near or at their monthly spend limit. */
export function ProjectsNearLimit({ organization_id }: { readonly organization_id: string }) {
  const projects = useLoaded(
    () => call(api.organizations({ organization_id }).projects.get({ query: {} })),
    [organization_id],
  );
  return (
    <Section
      title="Spend limits"
      description="This month (UTC), by project."
      actions={<a href={organizationPath(organization_id, 'projects')}>All projects</a>}
    >
      <LoadedView loaded={projects} lines={1}>
        {({ items }) => {
          const near = items.flatMap(({ id, name, spent_this_month_micros, spend_limit_micros }) =>
            spend_limit_micros !== null && spent_this_month_micros >= NEAR_SHARE * spend_limit_micros
              ? [{ id, name, spent_this_month_micros, spend_limit_micros }]
              : [],
          );
          if (near.length === 0) return <p class="muted">No project is near its limit.</p>;
          return (
            <div class="panel padded stack">
              {near.map(({ id, name, spent_this_month_micros, spend_limit_micros }) => (
                <Meter
                  key={id}
                  label={name}
                  value={spent_this_month_micros}
                  limit={spend_limit_micros}
                  format={formatMoney}
                />
              ))}
            </div>
          );
        }}
      </LoadedView>
    </Section>
  );
}
