import { Select } from '../components/field.tsx';
import type { AskedQuestion } from '../playground/asked.ts';
import { columnIn, columnOptions, columnValue } from '../rows/record-column.ts';
import type { LabelColumns } from './setup.ts';

/** The choice of the columns with the record, and with the right answers of each question. */
export function ColumnChoice({
  names,
  columns,
  asked,
  is_disabled,
  onChoose,
}: {
  readonly names: readonly string[];
  readonly columns: LabelColumns;
  readonly asked: readonly AskedQuestion[];
  readonly is_disabled: boolean;
  readonly onChoose: (columns: LabelColumns) => void;
}) {
  const { record, question, answer, answers } = columns;
  return (
    <>
      <Select
        label="Record"
        name="record"
        help="What the questions are about. Columns with right answers are not sent."
        options={columnOptions(names, 'All other columns, as one object')}
        value={columnValue(record)}
        is_disabled={is_disabled}
        onChange={(value) => onChoose({ ...columns, record: columnIn(value) })}
      />
      <Select
        label="Question of a row"
        name="question"
        options={columnOptions(names, 'Each question has a column')}
        value={columnValue(question)}
        is_disabled={is_disabled}
        onChange={(value) => onChoose({ ...columns, question: columnIn(value) })}
      />
      {question === null ? (
        asked.map(({ id }) => (
          <Select
            key={id}
            label={`Right answer: ${id}`}
            name={`answer-${id}`}
            options={columnOptions(names, 'None: it is not asked')}
            value={columnValue(answers[id] ?? null)}
            is_disabled={is_disabled}
            onChange={(value) => onChoose({ ...columns, answers: withColumn(answers, id, columnIn(value)) })}
          />
        ))
      ) : (
        <Select
          label="Right answer"
          name="answer"
          options={columnOptions(names, 'Choose a column')}
          value={columnValue(answer)}
          is_disabled={is_disabled}
          onChange={(value) => onChoose({ ...columns, answer: columnIn(value) })}
        />
      )}
    </>
  );
}

function withColumn(
  answers: LabelColumns['answers'],
  id: string,
  column: string | null,
): LabelColumns['answers'] {
  const others = Object.entries(answers).filter(([name]) => name !== id);
  return Object.fromEntries(column === null ? others : [...others, [id, column]]);
}
