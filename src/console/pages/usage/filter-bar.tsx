import { isMode } from '../../../questions/types-and-modes.ts';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { type Option, Select } from '../components/field.tsx';
import { ErrorState } from '../components/states.tsx';
import { useLoaded } from '../use-loaded.ts';
import { isFiltered, timesOf, type UsageView } from './view.ts';

const NO_FILTER = {
  project_id: null,
  api_key_id: null,
  model: null,
  mode: null,
  status: null,
} as const satisfies Partial<UsageView>;

/** Filters of requests by the values in the usage of the span. */
export function FilterBar({
  organization_id,
  view,
  shown_at_ms,
  refreshes,
  show,
}: {
  readonly organization_id: string;
  readonly view: UsageView;
  readonly shown_at_ms: number;
  readonly refreshes: number;
  readonly show: (changes: Partial<UsageView>) => void;
}) {
  // The choices stay while a part of the span is shown.
  const values = useLoaded(
    () => {
      const times = timesOf({ span: view.span, zoom: null }, shown_at_ms);
      return call(api.organizations({ organization_id }).usage.values.get({ query: times }));
    },
    [organization_id, view.span, refreshes],
    { keep_stale: true },
  );
  const { projects = [], api_keys = [], models = [], modes = [], statuses = [] } = values.data ?? {};
  const keys_of_project = api_keys.filter(
    ({ project_id }) => view.project_id === null || project_id === view.project_id,
  );
  return (
    <>
      <div class="filters">
        <Select
          label="Project"
          name="project"
          options={optionsOf(
            'All projects',
            projects.map(({ id, name, is_archived }) => ({
              value: id,
              label: is_archived ? `${name} (archived)` : name,
            })),
            view.project_id,
          )}
          value={view.project_id ?? ''}
          onChange={(id) => show({ project_id: id === '' ? null : id, api_key_id: null })}
        />
        <Select
          label="API key"
          name="key"
          options={optionsOf(
            'All keys',
            keys_of_project.map(({ id, name, display_prefix, is_revoked }) => ({
              value: id,
              label: `${name} (${is_revoked ? 'revoked, ' : ''}${display_prefix}…)`,
            })),
            view.api_key_id,
          )}
          value={view.api_key_id ?? ''}
          onChange={(id) => show({ api_key_id: id === '' ? null : id })}
        />
        <Select
          label="Model"
          name="model"
          options={optionsOf('All models', models.map(sameName), view.model)}
          value={view.model ?? ''}
          onChange={(model) => show({ model: model === '' ? null : model })}
        />
        <Select
          label="Mode"
          name="mode"
          options={optionsOf('Both modes', modes.map(sameName), view.mode)}
          value={view.mode ?? ''}
          onChange={(mode) => show({ mode: isMode(mode) ? mode : null })}
        />
        <Select
          label="Status"
          name="status"
          options={optionsOf(
            'All statuses',
            statuses.map((status) => sameName(String(status))),
            view.status === null ? null : String(view.status),
          )}
          value={view.status === null ? '' : String(view.status)}
          onChange={(status) => show({ status: status === '' ? null : Number(status) })}
        />
        {isFiltered(view) && <Button onClick={() => show(NO_FILTER)}>Clear filters</Button>}
      </div>
      {values.error !== undefined && <ErrorState error={values.error} onRetry={values.reload} />}
    </>
  );
}

/** Returns the choices: all, the values, and the chosen one even where the span has none of it. */
function optionsOf(all: string, values: readonly Option[], chosen: string | null): readonly Option[] {
  const is_listed = chosen === null || values.some(({ value }) => value === chosen);
  return [{ value: '', label: all }, ...values, ...(is_listed ? [] : [sameName(chosen)])];
}

function sameName(value: string): Option {
  return { value, label: value };
}
