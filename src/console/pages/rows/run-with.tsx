import { Select } from '../components/field.tsx';
import type { Setup } from '../playground/asking-setup.ts';
import { KeyChoice, keyOf } from '../playground/key-choice.tsx';
import type { RunSetup } from './run-setup.ts';

type Chosen = Pick<RunSetup, 'project_id' | 'key_id' | 'model'>;

/** The project that pays for a run, its key, and the model. */
export function RunWith({
  setup,
  chosen,
  is_disabled,
  onChoose,
}: {
  readonly setup: Setup;
  readonly chosen: Chosen;
  readonly is_disabled: boolean;
  readonly onChoose: (change: Partial<Chosen>) => void;
}) {
  const { project_id, keys_of_project, key_id } = keyOf(setup, chosen);
  return (
    <section class="panel padded playground-part" aria-label="Run with">
      <div class="playground-choices">
        <KeyChoice
          setup={setup}
          keys={keys_of_project}
          project_id={project_id}
          key_id={key_id}
          is_disabled={is_disabled}
          onProject={(id) => onChoose({ project_id: id, key_id: null })}
          onKey={(id) => onChoose({ project_id, key_id: id })}
        />
        <Select
          label="Model"
          name="model"
          options={setup.models.map(({ id }) => ({ value: id, label: id }))}
          value={chosen.model}
          is_disabled={is_disabled}
          onChange={(model) => onChoose({ model })}
        />
      </div>
    </section>
  );
}
