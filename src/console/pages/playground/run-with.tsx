import { Select } from '../components/field.tsx';
import { formatMoney, formatNumber } from '../format.ts';
import { organizationPath } from '../paths.ts';
import type { Setup } from './asking-setup.ts';
import { KeyChoice } from './key-choice.tsx';
import type { ChosenKey } from './use-key-choice.ts';
import type { WrittenRequest } from './use-request.ts';

/** The project that pays for a run, its key, the model, and another model to compare it with. */
export function RunWith({
  organization_id,
  setup,
  chosen_key: { project_id, keys_of_project, key_id, setProject, setKey },
  request: { model, setModel },
  error,
  compared_model,
  onCompare,
}: {
  readonly organization_id: string;
  readonly setup: Setup;
  readonly chosen_key: ChosenKey;
  readonly request: WrittenRequest;
  /** That of the model. */
  readonly error: string | undefined;
  /** Empty for none. */
  readonly compared_model: string;
  readonly onCompare: (model: string) => void;
}) {
  const { keys, models } = setup;
  const chosen_model = models.find(({ id }) => id === model);
  return (
    <section class="panel padded playground-part" aria-label="Run with">
      <div class="playground-choices">
        <KeyChoice
          setup={setup}
          keys={keys_of_project}
          project_id={project_id}
          key_id={key_id}
          onProject={setProject}
          onKey={setKey}
        />
        <Select
          label="Model"
          name="model"
          options={models.map(({ id }) => ({ value: id, label: id }))}
          value={model}
          error={error}
          onChange={setModel}
        />
        {models.length > 1 && (
          <Select
            label="Compare with"
            name="compared_model"
            options={[
              { value: '', label: 'No other model' },
              ...models.map(({ id }) => ({ value: id, label: id, is_disabled: id === model })),
            ]}
            value={compared_model}
            onChange={onCompare}
          />
        )}
      </div>
      {keys.length > 0 && key_id === undefined && (
        <p class="help">
          This project has no key. <a href={organizationPath(organization_id, 'keys')}>Create one</a>, or
          choose another project.
        </p>
      )}
      {chosen_model !== undefined && (
        <p class="help">
          {formatMoney(chosen_model.input_price_micros_per_million_tokens)} for a million input tokens,
          answers are free. Of a record over {formatNumber(chosen_model.context_tokens)} tokens the middle is
          left out.
        </p>
      )}
    </section>
  );
}
