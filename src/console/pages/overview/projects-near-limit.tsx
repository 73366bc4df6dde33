import { api, call } from '../client.ts';
import { Meter, NEAR_SHARE } from '../components/meter.tsx';
import { Section } from '../components/page-header.tsx';
import { ErrorState } from '../components/states.tsx';
import { formatMoney, formatMoneyShort } from '../format.ts';
import { organizationPath } from '../paths.ts';
import { useLoaded } from '../use-loaded.ts';

/** The projects near or at their monthly spend limit; nothing where there is none. */
export function ProjectsNearLimit({ organization_id }: { readonly organization_id: string }) {
  const projects = useLoaded(
    () => call(api.organizations({ organization_id }).projects.get({ query: {} })),
    [organization_id],
  );
  const { error } = projects;
  const near = (projects.data?.items ?? []).flatMap(
    ({ id, name, spent_this_month_micros, spend_limit_micros }) =>
      spend_limit_micros !== null && spent_this_month_micros >= NEAR_SHARE * spend_limit_micros
        ? [{ id, name, spent_this_month_micros, spend_limit_micros }]
        : [],
  );
  if (error === undefined && near.length === 0) return null;
  return (
    <Section
      title="Spend limits"
      description="Projects near or at theirs, this month (UTC)."
      actions={<a href={organizationPath(organization_id, 'projects')}>All projects</a>}
    >
      {error !== undefined && <ErrorState error={error} onRetry={projects.reload} />}
      {near.length > 0 && (
        <div class="panel padded stack">
          {near.map(({ id, name, spent_this_month_micros, spend_limit_micros }) => (
            <Meter
              key={id}
              label={name}
              value={spent_this_month_micros}
              limit={spend_limit_micros}
              format={formatMoneyShort}
              formatLimit={formatMoney}
            />
          ))}
        </div>
      )}
    </Section>
  );
}
