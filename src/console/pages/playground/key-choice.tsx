import { Select } from '../components/field.tsx';
import type { Setup } from './asking-setup.ts';

/** The project that pays, and the key of it that asks. */
export function KeyChoice({
  setup: { projects },
  keys,
  project_id,
  key_id,
  is_disabled = false,
  onProject,
  onKey,
}: {
  readonly setup: Setup;
  /** The keys of the project. */
  readonly keys: Setup['keys'];
  readonly project_id: string;
  readonly key_id: string | undefined;
  readonly is_disabled?: boolean;
  readonly onProject: (project_id: string) => void;
  readonly onKey: (key_id: string) => void;
}) {
  return (
    <>
      <Select
        label="Project"
        name="project"
        options={projects.map(({ id, name }) => ({ value: id, label: name }))}
        value={project_id}
        is_disabled={is_disabled}
        onChange={onProject}
      />
      <Select
        label="API key"
        name="key"
        options={
          keys.length === 0
            ? [{ value: '', label: 'None' }]
            : keys.map(({ id, name }) => ({ value: id, label: name }))
        }
        value={key_id ?? ''}
        is_disabled={is_disabled || keys.length === 0}
        onChange={onKey}
      />
    </>
  );
}

/** The chosen project or the first that can ask, with its keys, of which the chosen or the first one asks. */
export function keyOf(
  { keys, projects }: Setup,
  chosen: { readonly project_id?: string | undefined; readonly key_id?: string | null | undefined },
) {
  const project =
    projects.find(({ id }) => id === chosen.project_id) ??
    projects.find(({ id }) => keys.some((key) => key.project_id === id)) ??
    projects[0];
  const project_id = project?.id ?? '';
  const keys_of_project = keys.filter((key) => key.project_id === project_id);
  const key = keys_of_project.find(({ id }) => id === chosen.key_id) ?? keys_of_project[0];
  return { project_id, keys_of_project, key_id: key?.id };
}
