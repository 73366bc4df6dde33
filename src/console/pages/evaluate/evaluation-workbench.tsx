import { useMemo, useState } from 'preact/hooks';
import { Notice } from '../components/notice.tsx';
import { formatCount } from '../format.ts';
import type { AskedQuestion } from '../playground/asked.ts';
import { keyOf } from '../playground/key-choice.tsx';
import { MissingParts } from '../playground/missing-parts.tsx';
import { DropZone } from '../rows/drop-zone.tsx';
import { FilePart } from '../rows/file-part.tsx';
import { firstRunSetup } from '../rows/first-run-setup.ts';
import { ForgetDialog } from '../rows/forget-dialog.tsx';
import { likeliestRecord } from '../rows/likeliest-record.ts';
import { Progress } from '../rows/progress.tsx';
import { QuestionChoice } from '../rows/question-choice.tsx';
import { askedIn } from '../rows/questions.ts';
import type { RowFile } from '../rows/row-file.ts';
import type { RowRun, RowTask } from '../rows/row-run.ts';
import type { BenchProps } from '../rows/run-page.tsx';
import { RunPanel } from '../rows/run-panel.tsx';
import { useRowRun } from '../rows/use-row-run.ts';
import { useRowsPrice } from '../rows/use-rows-price.ts';
import { useRunSetup } from '../rows/use-run-setup.ts';
import { ColumnChoice } from './column-choice.tsx';
import { evaluatedQuestions, shortText } from './evaluated.ts';
import type { LabelledRow } from './labels.ts';
import { Results } from './results.tsx';
import type { EvaluationSetup, LabelColumns, TuningBase } from './setup.ts';
import { Tuning } from './tuning.tsx';
import { tuningBase } from './tuning-base.ts';
import { type FileLabels, useLabels } from './use-labels.ts';

const NO_COLUMNS: LabelColumns = { record: null, question: null, answer: null, answers: {} };

/** One evaluation: its file, where its labels are, and how good the answers are. */
export function EvaluationWorkbench({
  organization_id,
  setup,
  scope,
  work,
  kept,
}: BenchProps<EvaluationSetup>) {
  const [chosen, chooseOf, note] = useRunSetup<EvaluationSetup>(
    () => kept?.setup ?? { ...firstRunSetup(setup, work), columns: NO_COLUMNS },
  );
  const { file, run, progress, is_begun, ...rows_run } = useRowRun({
    store: 'evaluations',
    scope,
    kept,
    chosen,
  });
  const choose = (change: Partial<EvaluationSetup>) => chooseOf({ ...change, base: undefined });
  const [question, setQuestion] = useState<'file' | 'answers'>();

  const labels = useLabels(file, chosen);
  const { asked, rows, complaint } = labels;
  const take = (taken: RowFile) => {
    choose({ columns: likeliestColumns(taken.columns, asked) });
    rows_run.take(taken);
  };
  const removeFile = async () => {
    choose({ columns: NO_COLUMNS });
    await rows_run.remove();
  };

  const { key_id } = keyOf(setup, chosen);
  const task: RowTask | null =
    key_id === undefined || complaint !== undefined || rows.length === 0
      ? null
      : { organization_id, key_id, ...rowsOf(rows), setup: chosen };
  const price = useRowsPrice(setup.can_pay && !is_begun ? task : null, file ?? { rows: [] }, chosen);
  if (file === null) {
    return (
      <>
        <MissingParts organization_id={organization_id} setup={setup} />
        <DropZone onRead={take} />
        <CasesHelp />
      </>
    );
  }
  return (
    <>
      <MissingParts organization_id={organization_id} setup={setup} />
      <div class="playground">
        <div class="playground-request">
          <Labels
            {...{ organization_id, work, file, chosen, labels }}
            is_disabled={is_begun}
            is_running={progress.state !== 'stopped'}
            onRemove={() => (is_begun ? setQuestion('file') : void removeFile())}
            onChoose={choose}
          />
          <RunPanel
            {...{ setup, chosen, run, task, price, is_begun }}
            total={rows.length}
            onChoose={choose}
            onRun={async (task) => {
              // Answers that are there already may be of other weights.
              if (is_begun) await run.start(task);
              else await startNotingBase(run, task, (base) => note(chosen.run_key, { base }));
            }}
            onRestart={() => setQuestion('answers')}
          />
        </div>
        <div class="playground-results">
          <LabelNotice file={file} labels={labels} />
          {is_begun && <Progress organization_id={organization_id} progress={progress} total={rows.length} />}
        </div>
      </div>
      <Evaluated {...{ organization_id, file, chosen, run, labels }} />
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

/** Starts a run, and notes the base of its tunings: at its begin, or at its end for a model that is not loaded before. */
async function startNotingBase(run: RowRun, task: RowTask, note: (base: TuningBase) => void): Promise<void> {
  const noted = async () => {
    const base = await tuningBase(task.organization_id, task.setup.model).catch(() => null);
    if (base !== null) note(base);
    return base;
  };
  const at_begin = noted();
  await run.start(task);
  if ((await at_begin) === null) await noted();
}

/** The rows of a run, each asked only the questions whose right answers are known. */
function rowsOf(rows: readonly LabelledRow[]) {
  const by_row = new Map(rows.map((row) => [row.row, row]));
  return {
    rows: rows.map(({ row }) => row),
    questions: rows[0]?.questions ?? null,
    asked: (row: number) => by_row.get(row) ?? null,
  };
}

/** The file with the choice of its columns, and the questions that are asked about each row. */
function Labels({
  organization_id,
  work,
  file,
  chosen,
  labels: { asked, is_cases, complaint },
  is_disabled,
  is_running,
  onRemove,
  onChoose,
}: Pick<BenchProps<EvaluationSetup>, 'organization_id' | 'work'> & {
  readonly file: RowFile;
  readonly chosen: EvaluationSetup;
  readonly labels: FileLabels;
  readonly is_disabled: boolean;
  readonly is_running: boolean;
  readonly onRemove: () => void;
  readonly onChoose: (change: Partial<EvaluationSetup>) => void;
}) {
  return (
    <>
      <FilePart file={file} is_running={is_running} onRemove={onRemove}>
        {is_cases ? (
          <p class="help">The file has its questions: each row is asked its own.</p>
        ) : (
          <ColumnChoice
            names={file.columns}
            columns={chosen.columns}
            asked={asked}
            is_disabled={is_disabled}
            onChoose={(columns) => onChoose({ columns })}
          />
        )}
      </FilePart>
      {!is_cases && (
        <QuestionChoice
          organization_id={organization_id}
          work={work}
          chosen={chosen}
          asked={asked}
          complaint={complaint}
          is_disabled={is_disabled}
          onChoose={(questions) =>
            onChoose({ questions, columns: likeliestColumns(file.columns, askedIn(questions)) })
          }
        />
      )}
    </>
  );
}

/** The results of the answers so far, while none is under way. */
function Evaluated({
  run,
  labels,
  ...tuned
}: Pick<BenchProps<EvaluationSetup>, 'organization_id'> & {
  readonly file: RowFile;
  readonly chosen: EvaluationSetup;
  readonly run: RowRun;
  readonly labels: FileLabels;
}) {
  const { state, answered } = run.progress.value;
  const { rows, is_cases } = labels;
  const evaluated = useMemo(
    () =>
      state === 'stopped' && answered > 0
        ? evaluatedQuestions(rows, run.answers, ({ id, question }) => (is_cases ? shortText(question) : id))
        : [],
    [state, answered, rows, run],
  );
  if (evaluated.length === 0) return null;
  return (
    <div class="playground-results evaluate-results">
      <Results evaluated={evaluated} rows={rows} />
      <Tuning key={answered} evaluated={evaluated} {...tuned} />
    </div>
  );
}

/** Takes the columns that have a question's id as their name. */
function likeliestColumns(names: readonly string[], asked: readonly AskedQuestion[]): LabelColumns {
  const answers = Object.fromEntries(asked.filter(({ id }) => names.includes(id)).map(({ id }) => [id, id]));
  const others = names.filter((name) => !Object.hasOwn(answers, name));
  return { ...NO_COLUMNS, record: likeliestRecord(others), answers };
}

/** How many rows are asked, and why others are not. */
function LabelNotice({
  file,
  labels: { rows, problems },
}: {
  readonly file: RowFile;
  readonly labels: FileLabels;
}) {
  if (problems.length === 0 && rows.length === file.rows.length) return null;
  return (
    <Notice
      tone={rows.length === 0 ? 'danger' : 'warning'}
      title={
        rows.length === 0
          ? 'No row has a right answer: choose its column.'
          : `${formatCount(rows.length, 'row is', 'rows are')} asked.`
      }
    >
      <ul class="evaluate-problems">
        {problems.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Notice>
  );
}

function CasesHelp() {
  return (
    <p class="help evaluate-help">
      A table has a column with the record and one with the right answer to each question: yes or no, the id
      of an option, or the number of a level. A JSONL file of <code>tds eval</code> has its own questions.
    </p>
  );
}
