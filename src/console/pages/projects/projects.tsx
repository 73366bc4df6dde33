import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { Meter } from '../components/meter.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchedTable } from '../components/searched-table.tsx';
import type { SortableColumn } from '../components/sortable-table.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { ACTIONS } from '../components/table.tsx';
import { Tabs } from '../components/tabs.tsx';
import { Time } from '../components/time.tsx';
import { formatMoney, formatMoneyShort, formatNumber } from '../format.ts';
import type { PageProps } from '../page.ts';
import { query, setQuery } from '../router.ts';
import { may } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import {
  ArchiveProjectDialog,
  CreateProjectDialog,
  EditProjectDialog,
  type Project,
} from './project-dialogs.tsx';

const LISTS = [
  { value: 'active', label: 'Active' },
  { value: 'archived', label: 'Archived' },
] as const;

/** The open dialog, and its project. */
type Open =
  | { readonly dialog: 'create' }
  | { readonly dialog: 'edit' | 'archive'; readonly project: Project };

/** The organization's projects: create, rename, limit, archive. */
export default function Projects({ params: { organization_id = '' } }: PageProps) {
  const projects = useLoaded(
    () => call(api.organizations({ organization_id }).projects.get({ query: {} })),
    [],
  );
  const [open, setOpen] = useState<Open>();
  const list = query.value.get('list') === 'archived' ? 'archived' : 'active';
  const dialog = { organization_id, onDone: projects.reload, onClose: () => setOpen(undefined) };
  return (
    <>
      <PageHeader
        title="Projects"
        description="Group keys and their usage, and limit what each group spends in a month."
        actions={
          may('manage_projects') && (
            <Button kind="primary" onClick={() => setOpen({ dialog: 'create' })}>
              Create project
            </Button>
          )
        }
      />
      <Tabs
        label="Projects"
        options={LISTS}
        value={list}
        onChange={(chosen) => setQuery({ list: chosen === 'active' ? null : chosen })}
      >
        {list === 'archived' ? (
          <ArchivedProjects organization_id={organization_id} />
        ) : (
          <LoadedView loaded={projects}>
            {({ items }) => <ActiveProjects projects={items} onOpen={setOpen} />}
          </LoadedView>
        )}
      </Tabs>
      <CreateProjectDialog {...dialog} is_open={open?.dialog === 'create'} />
      <EditProjectDialog {...dialog} project={open?.dialog === 'edit' ? open.project : undefined} />
      <ArchiveProjectDialog {...dialog} project={open?.dialog === 'archive' ? open.project : undefined} />
    </>
  );
}

const NAME: SortableColumn<Project> = {
  title: 'Name',
  is_name: true,
  cell: ({ name }) => name,
  sortBy: ({ name }) => name,
};
const CREATED: SortableColumn<Project> = {
  title: 'Created',
  cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} />,
  sortBy: ({ created_at_ms }) => created_at_ms,
};
const SPENT = {
  title: 'Spent this month (UTC)',
  sortBy: ({ spent_this_month_micros }: Project) => spent_this_month_micros,
};

/** The common traits of both lists: searched by name and sorted by their titles. */
const TABLE = {
  plural: 'projects',
  placeholder: 'Search by name',
  textsOf: ({ name }: Project) => [name],
  is_dense: true,
  keyOf: ({ id }: Project) => id,
};

function ActiveProjects({
  projects,
  onOpen,
}: {
  readonly projects: readonly Project[];
  readonly onOpen: (open: Open) => void;
}) {
  const actions: SortableColumn<Project> = {
    ...ACTIONS,
    cell: (project) => (
      <span class="row-actions">
        <Button
          size="small"
          label={`Edit ${project.name}`}
          onClick={() => onOpen({ dialog: 'edit', project })}
        >
          Edit…
        </Button>
        <Button
          size="small"
          label={`Archive ${project.name}`}
          onClick={() => onOpen({ dialog: 'archive', project })}
        >
          Archive…
        </Button>
      </span>
    ),
  };
  return (
    <SearchedTable
      {...TABLE}
      caption="Active projects"
      rows={projects}
      empty={
        <EmptyState title="No active projects">
          {may('manage_projects')
            ? 'Create a project first, and then its keys.'
            : 'Owners and admins can create projects.'}
        </EmptyState>
      }
      columns={[
        NAME,
        {
          ...SPENT,
          has_own_line: true,
          cell: ({ name, spent_this_month_micros, spend_limit_micros }) => (
            <Meter
              label={`Spent by ${name} this month`}
              hides_label
              value={spent_this_month_micros}
              limit={spend_limit_micros}
              format={formatMoneyShort}
              formatLimit={formatMoney}
            />
          ),
        },
        {
          title: 'Active keys',
          is_at_end: true,
          cell: ({ active_keys }) => formatNumber(active_keys),
          sortBy: ({ active_keys }) => active_keys,
        },
        CREATED,
        ...(may('manage_projects') ? [actions] : []),
      ]}
    />
  );
}

function ArchivedProjects({ organization_id }: { readonly organization_id: string }) {
  const archived = useLoaded(
    () => call(api.organizations({ organization_id }).projects.get({ query: { archived: 'true' } })),
    [],
  );
  return (
    <LoadedView loaded={archived}>
      {({ items }) => (
        <SearchedTable
          {...TABLE}
          caption="Archived projects"
          rows={items.toSorted((one, other) => (other.archived_at_ms ?? 0) - (one.archived_at_ms ?? 0))}
          empty={
            <EmptyState title="No archived projects">
              Projects that you archive stay here, with their usage.
            </EmptyState>
          }
          columns={[
            NAME,
            {
              ...SPENT,
              is_at_end: true,
              cell: ({ spent_this_month_micros }) => formatMoneyShort(spent_this_month_micros),
            },
            CREATED,
            {
              title: 'Archived',
              cell: ({ archived_at_ms }) => <Time time_ms={archived_at_ms} />,
              sortBy: ({ archived_at_ms }) => archived_at_ms ?? 0,
            },
          ]}
        />
      )}
    </LoadedView>
  );
}
