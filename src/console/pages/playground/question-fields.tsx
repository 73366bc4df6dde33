import type { ComponentChildren } from 'preact';
import { QUESTION_TYPES } from '../../../questions/types-and-modes.ts';
import { Button } from '../components/button.tsx';
import { Checkbox, Select, TextArea, TextField } from '../components/field.tsx';
import { type DraftQuestion, moved, newLevel, newOption } from './draft.ts';
import { ThresholdSlider } from './threshold-slider.tsx';

const TYPE_LABELS = {
  noul: 'Yes or no (noul)',
  choice: 'Choice',
  score: 'Score',
} as const;

/** The first value of a threshold. */
export const THRESHOLD_DEFAULT = 0.5;

interface FieldsProps {
  readonly question: DraftQuestion;
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (question: DraftQuestion) => void;
}

/** The fields of one question: those of its type are shown, the others are kept. */
export function QuestionFields({ question, errors, onChange }: FieldsProps) {
  const { key, id, type, instructions } = question;
  const criteria_error = errors.get(`criteria-${key}`);
  return (
    <div class="question-fields">
      <div class="question-names">
        <TextField
          label="Name"
          name={`id-${key}`}
          value={id}
          error={errors.get(`id-${key}`)}
          onInput={(changed) => onChange({ ...question, id: changed })}
        />
        <Select
          label="Type"
          name={`type-${key}`}
          options={QUESTION_TYPES.map((value) => ({ value, label: TYPE_LABELS[value] }))}
          value={type}
          error={errors.get(`type-${key}`)}
          onChange={(changed) => onChange({ ...question, type: changed })}
        />
      </div>
      <TextArea
        label="Question"
        name={`instructions-${key}`}
        rows={2}
        value={instructions}
        error={errors.get(`instructions-${key}`)}
        placeholder="In plain English, answerable from the record alone"
        onInput={(changed) => onChange({ ...question, instructions: changed })}
      />
      <FieldsOfType question={question} errors={errors} onChange={onChange} />
      {criteria_error !== undefined && (
        <p class="field-error" role="alert">
          {criteria_error}
        </p>
      )}
    </div>
  );
}

function FieldsOfType({ question, errors, onChange }: FieldsProps) {
  switch (question.type) {
    case 'noul':
      return <NoulFields question={question} onChange={onChange} />;
    case 'choice':
      return <OptionRows question={question} errors={errors} onChange={onChange} />;
    case 'score':
      return <LevelRows question={question} onChange={onChange} />;
  }
}

function NoulFields({ question, onChange }: Omit<FieldsProps, 'errors'>) {
  const { key, yes, no, threshold } = question;
  return (
    <>
      <div class="question-names">
        <TextField
          label="Yes means"
          name={`yes-${key}`}
          value={yes}
          placeholder="Optional"
          onInput={(changed) => onChange({ ...question, yes: changed })}
        />
        <TextField
          label="No means"
          name={`no-${key}`}
          value={no}
          placeholder="Optional"
          onInput={(changed) => onChange({ ...question, no: changed })}
        />
      </div>
      <Checkbox
        label="Decide at a threshold"
        name={`has-threshold-${key}`}
        is_checked={threshold !== null}
        onChange={(is_checked) => onChange({ ...question, threshold: is_checked ? THRESHOLD_DEFAULT : null })}
      />
      {threshold !== null && (
        <ThresholdSlider
          label={`Threshold of ${question.id}`}
          value={threshold}
          onChange={(changed) => onChange({ ...question, threshold: changed })}
        />
      )}
    </>
  );
}

function OptionRows({ question, errors, onChange }: FieldsProps) {
  const { key, options } = question;
  const change = (changed: DraftQuestion['options']) => onChange({ ...question, options: changed });
  return (
    <Rows
      legend="Options"
      add="Add option"
      onAdd={() => change([...options, newOption()])}
      rows={options.map((option, at) => ({
        key: option.key,
        name: option.id === '' ? `option ${at + 1}` : option.id,
        fields: (
          <>
            <TextField
              label={`Name of option ${at + 1}`}
              hides_label
              name={`option-${option.key}`}
              value={option.id}
              placeholder="Name"
              error={errors.get(`option-${option.key}`)}
              onInput={(id) => change(options.with(at, { ...option, id }))}
            />
            <TextField
              label={`Description of option ${at + 1}`}
              hides_label
              name={`description-${key}-${option.key}`}
              value={option.description}
              placeholder="What it means"
              onInput={(description) => change(options.with(at, { ...option, description }))}
            />
          </>
        ),
        move: (step) => change(moved(options, at, step)),
        remove: () => change(options.toSpliced(at, 1)),
      }))}
    />
  );
}

function LevelRows({ question, onChange }: Omit<FieldsProps, 'errors'>) {
  const { levels } = question;
  const change = (changed: DraftQuestion['levels']) => onChange({ ...question, levels: changed });
  return (
    <Rows
      legend="Levels, lowest first"
      add="Add level"
      onAdd={() => change([...levels, newLevel()])}
      rows={levels.map((level, at) => ({
        key: level.key,
        name: `level ${at}`,
        fields: (
          <TextField
            label={`Level ${at}`}
            hides_label
            name={`level-${level.key}`}
            value={level.text}
            prefix={String(at)}
            placeholder="What this level means"
            onInput={(text) => change(levels.with(at, { ...level, text }))}
          />
        ),
        move: (step) => change(moved(levels, at, step)),
        remove: () => change(levels.toSpliced(at, 1)),
      }))}
    />
  );
}

interface RowsProps {
  readonly legend: string;
  readonly add: string;
  readonly onAdd: () => void;
  readonly rows: readonly {
    readonly key: number;
    readonly name: string;
    readonly fields: ComponentChildren;
    readonly move: (step: -1 | 1) => void;
    readonly remove: () => void;
  }[];
}

/** Lines that can be moved and removed, and a button to add one. */
function Rows({ legend, add, onAdd, rows }: RowsProps) {
  return (
    <fieldset class="option-rows">
      <legend>{legend}</legend>
      {rows.map(({ key, name, fields, move, remove }, at) => (
        <div key={key} class="option-row">
          <div class="option-fields">{fields}</div>
          <div class="option-actions">
            <Button
              kind="quiet"
              size="small"
              label={`Move ${name} up`}
              is_disabled={at === 0}
              onClick={() => move(-1)}
            >
              ↑
            </Button>
            <Button
              kind="quiet"
              size="small"
              label={`Move ${name} down`}
              is_disabled={at === rows.length - 1}
              onClick={() => move(1)}
            >
              ↓
            </Button>
            <Button kind="quiet" size="small" label={`Remove ${name}`} onClick={remove}>
              ×
            </Button>
          </div>
        </div>
      ))}
      <div>
        <Button size="small" onClick={onAdd}>
          {add}
        </Button>
      </div>
    </fieldset>
  );
}
