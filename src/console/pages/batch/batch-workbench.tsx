import { useMemo, useState } from 'preact/hooks';
import type { JsonValue } from '../../../json/json-value.ts';
import { Button } from '../components/button.tsx';
import { Select } from '../components/field.tsx';
import { objectIn } from '../object-in.ts';
import { keyOf } from '../playground/key-choice.tsx';
import { MissingParts } from '../playground/missing-parts.tsx';
import { DropZone } from '../rows/drop-zone.tsx';
import { FilePart } from '../rows/file-part.tsx';
import { firstRunSetup } from '../rows/first-run-setup.ts';
import { ForgetDialog } from '../rows/forget-dialog.tsx';
import { likeliestRecord } from '../rows/likeliest-record.ts';
import { Progress } from '../rows/progress.tsx';
import { QuestionChoice } from '../rows/question-choice.tsx';
import { askedIn, questionComplaint } from '../rows/questions.ts';
import { columnIn, columnOptions, columnValue } from '../rows/record-column.ts';
import { type RowFile, recordOf } from '../rows/row-file.ts';
import type { RowTask } from '../rows/row-run.ts';
import type { BenchProps } from '../rows/run-page.tsx';
import { RunPanel } from '../rows/run-panel.tsx';
import { useRowRun } from '../rows/use-row-run.ts';
import { useRowsPrice } from '../rows/use-rows-price.ts';
import { useRunSetup } from '../rows/use-run-setup.ts';
import { download } from './download.ts';
import { RowsTable } from './rows-table.tsx';
import type { BatchSetup } from './setup.ts';

/** One batch: its file, what is asked of each row, and the answers. */
export function BatchWorkbench({ organization_id, setup, scope, work, kept }: BenchProps<BatchSetup>) {
  const [chosen, choose] = useRunSetup<BatchSetup>(
    () => kept?.setup ?? { ...firstRunSetup(setup, work), column: null },
  );
  const { file, run, progress, is_begun, ...rows_run } = useRowRun({ store: 'batches', scope, kept, chosen });
  const [question, setQuestion] = useState<'file' | 'answers'>();

  const take = (taken: RowFile) => {
    choose({ column: likeliestRecord(taken.columns) });
    rows_run.take(taken);
  };
  const removeFile = async () => {
    choose({ column: null });
    await rows_run.remove();
  };

  const { key_id } = keyOf(setup, chosen);
  const body = useMemo(() => objectIn(chosen.questions?.body ?? ''), [chosen.questions]);
  const asked = useMemo(() => askedIn(chosen.questions), [chosen.questions]);
  const complaint = body === null ? undefined : questionComplaint(body);
  const task: RowTask | null =
    file === null || body === null || key_id === undefined || complaint !== undefined
      ? null
      : { organization_id, key_id, ...rowsOf(file, chosen, body), setup: chosen };
  const price = useRowsPrice(setup.can_pay && !is_begun ? task : null, file ?? { rows: [] }, chosen);

  if (file === null) {
    return (
      <>
        <MissingParts organization_id={organization_id} setup={setup} />
        <DropZone onRead={take} />
      </>
    );
  }
  const rows = { file, questions: asked, answers: run.answers };
  return (
    <>
      <MissingParts organization_id={organization_id} setup={setup} />
      <div class="playground">
        <div class="playground-request">
          <FilePart
            file={file}
            is_running={progress.state !== 'stopped'}
            onRemove={() => (is_begun ? setQuestion('file') : void removeFile())}
          >
            <Select
              label="Record"
              name="column"
              help="What the questions are about. The other columns are not sent."
              options={columnOptions(file.columns, 'All columns, as one object')}
              value={columnValue(chosen.column)}
              is_disabled={is_begun}
              onChange={(value) => choose({ column: columnIn(value) })}
            />
          </FilePart>
          <QuestionChoice
            organization_id={organization_id}
            work={work}
            chosen={chosen}
            asked={asked}
            complaint={complaint}
            is_disabled={is_begun}
            onChoose={(questions) => choose({ questions })}
          />
        </div>
        <div class="playground-results">
          <RunPanel
            {...{ setup, chosen, run, task, price, is_begun }}
            total={file.rows.length}
            onChoose={choose}
            onRun={(task) => run.start(task)}
            onRestart={() => setQuestion('answers')}
          />
          {is_begun && (
            <Progress organization_id={organization_id} progress={progress} total={file.rows.length}>
              <div class="row">
                <Button size="small" onClick={() => download(rows, 'csv')}>
                  Download CSV
                </Button>
                <Button size="small" onClick={() => download(rows, 'jsonl')}>
                  Download JSONL
                </Button>
              </div>
            </Progress>
          )}
        </div>
      </div>
      <RowsTable rows={rows} column={chosen.column} />
      <ForgetDialog
        forgets={question}
        onClose={() => setQuestion(undefined)}
        onForgetFile={removeFile}
        onForgetAnswers={() => {
          choose({});
          rows_run.restart();
        }}
      />
    </>
  );
}

/** All rows, each of which is asked the same questions. */
function rowsOf({ rows }: RowFile, { column }: BatchSetup, questions: JsonValue) {
  return {
    rows: rows.map((_, at) => at + 1),
    questions,
    asked: (row: number) => {
      const record = recordOf(rows[row - 1] ?? '', column);
      return record === null ? null : { record, questions };
    },
  };
}
