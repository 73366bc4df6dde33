import { useEffect, useMemo, useState } from 'preact/hooks';
import { JsonObject, type JsonValue } from '../../../json/json-value.ts';
import type { Mode } from '../../../questions/question.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Select } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { formatCount, formatMoney, formatMoneyShort } from '../format.ts';
import { organizationPath } from '../page.ts';
import { askedQuestions } from '../playground/asked.ts';
import type { Setup } from '../playground/asking-setup.ts';
import { type KeptWork, keeps_work } from '../playground/kept-work.ts';
import { KeyChoice, keyOf } from '../playground/key-choice.tsx';
import { MissingParts } from '../playground/missing-parts.tsx';
import { objectIn } from '../playground/use-request.ts';
import { type BatchProgress, BatchRun, type BatchTask } from './batch-run.ts';
import { DropZone } from './drop-zone.tsx';
import { forgetAnswers, forgetBatch, type KeptBatch, keepRows, keepSetup } from './kept-batch.ts';
import { Progress } from './progress.tsx';
import { questionChoices, questionComplaint } from './questions.ts';
import type { RowFile } from './row-file.ts';
import { RowsTable } from './rows-table.tsx';
import { type BatchSetup, newRunKey } from './setup.ts';
import { type BatchPrice, useBatchPrice } from './use-batch-price.ts';

const MODES = [
  { value: 'fast', label: 'Fast' },
  { value: 'consistent', label: 'Consistent' },
] as const satisfies readonly { readonly value: Mode; readonly label: string }[];

/** The names of columns that are taken for the record without being chosen. */
const RECORD_COLUMNS = ['state', 'record', 'text', 'message', 'body'];
/** The value of the choice that takes all columns; a column's name has another first character. */
const ALL_COLUMNS = '*';

interface BenchProps {
  readonly organization_id: string;
  readonly setup: Setup;
  /** The name under which the browser keeps it. */
  readonly scope: string;
  readonly work: KeptWork;
  readonly kept: KeptBatch | null;
}

/** One batch: its file, what is asked of each row, and the answers. */
export function BatchWorkbench({ organization_id, setup, scope, work, kept }: BenchProps) {
  const [file, setFile] = useState<RowFile | null>(kept?.file ?? null);
  const [run, setRun] = useState(() => new BatchRun(scope, kept?.answers));
  const [chosen, setChosen] = useState<BatchSetup>(() => kept?.setup ?? firstSetup(setup, work));
  const [question, setQuestion] = useState<'file' | 'answers'>();
  useEffect(() => () => run.leave(), [run]);

  const is_kept = keeps_work.value;
  useEffect(() => {
    if (!is_kept || file === null || file === kept?.file) return;
    void keepRows(scope, file, run.answers).then((are_kept) => are_kept || run.noteUnkept());
  }, [is_kept, scope, file]);
  useEffect(() => {
    if (is_kept && file !== null) void keepSetup(scope, chosen);
  }, [is_kept, scope, chosen, file]);

  const progress = run.progress.value;
  const is_begun = progress.answered + progress.refused > 0 || progress.state !== 'stopped';
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    if (!is_begun || (is_kept && progress.is_kept)) return;
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [is_begun, is_kept, progress.is_kept]);

  const begin = (column: string | null) => {
    setRun(new BatchRun(scope));
    setChosen({ ...chosen, column, run_key: newRunKey() });
  };
  const take = (taken: RowFile) => {
    const { columns } = taken;
    const likeliest =
      columns.length === 1 ? columns[0] : RECORD_COLUMNS.find((name) => columns.includes(name));
    begin(likeliest ?? null);
    setFile(taken);
  };
  const removeFile = async () => {
    setFile(null);
    begin(null);
    await forgetBatch(scope);
  };

  const { project_id, keys_of_project, key_id } = keyOf(setup, {
    project_id: chosen.project_id,
    key_id: chosen.key_id ?? undefined,
  });
  const body = useMemo(() => objectIn(chosen.questions?.body ?? ''), [chosen.questions]);
  const asked = useMemo(
    () => (body === null ? [] : askedQuestions(new JsonObject<JsonValue>(['questions'], [body]))),
    [body],
  );
  const complaint = body === null ? undefined : questionComplaint(body);
  const task: BatchTask | null =
    file === null || body === null || key_id === undefined || complaint !== undefined
      ? null
      : { organization_id, key_id, file, questions: body, setup: chosen };
  const price = useBatchPrice(setup.can_pay && !is_begun ? task : null);

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
          <section class="panel padded playground-part" aria-label="File">
            <header class="playground-part-head">
              <h2 class="batch-file">{file.name}</h2>
              <Button
                size="small"
                is_disabled={progress.state !== 'stopped'}
                onClick={() => (is_begun ? setQuestion('file') : void removeFile())}
              >
                Another file
              </Button>
            </header>
            <p class="help">
              {formatCount(file.rows.length, 'row')}, {formatCount(file.columns.length, 'column')}.{' '}
              {is_kept ? 'They stay in this browser' : 'They stay on this page'}: the service does not save
              them.
            </p>
            <Select
              label="Record"
              name="column"
              help="What the questions are about. The other columns are not sent."
              options={[
                { value: ALL_COLUMNS, label: 'All columns, as one object' },
                ...file.columns.map((name) => ({ value: `=${name}`, label: name })),
              ]}
              value={chosen.column === null ? ALL_COLUMNS : `=${chosen.column}`}
              is_disabled={is_begun}
              onChange={(value) =>
                setChosen({ ...chosen, column: value === ALL_COLUMNS ? null : value.slice(1) })
              }
            />
          </section>
          <QuestionChoice
            organization_id={organization_id}
            work={work}
            chosen={chosen}
            asked={asked}
            complaint={complaint}
            is_disabled={is_begun}
            onChoose={setChosen}
          />
          <section class="panel padded playground-part" aria-label="Run with">
            <div class="playground-choices">
              <KeyChoice
                setup={setup}
                keys={keys_of_project}
                project_id={project_id}
                key_id={key_id}
                is_disabled={is_begun}
                onProject={(id) => setChosen({ ...chosen, project_id: id, key_id: null })}
                onKey={(id) => setChosen({ ...chosen, project_id, key_id: id })}
              />
              <Select
                label="Model"
                name="model"
                options={setup.models.map(({ id }) => ({ value: id, label: id }))}
                value={chosen.model}
                is_disabled={is_begun}
                onChange={(model) => setChosen({ ...chosen, model })}
              />
            </div>
          </section>
          {price !== undefined && price.cost_micros > setup.available_micros && (
            <Notice tone="warning" title="The credit may not be enough for all rows.">
              {formatMoneyShort(setup.available_micros)} is available. A run that stops for it goes on after a
              top-up.
            </Notice>
          )}
          <div class="run-bar panel">
            <SegmentedControl
              label="Mode"
              options={MODES.map((mode) => ({ ...mode, is_disabled: is_begun }))}
              value={chosen.mode}
              onChange={(mode) => setChosen({ ...chosen, mode })}
            />
            <span class="run-price number">{priceText(price)}</span>
            <RunButtons
              progress={progress}
              total={file.rows.length}
              onRun={task === null ? null : () => void run.start(task)}
              onPause={() => run.pause()}
              onRestart={() => setQuestion('answers')}
            />
          </div>
        </div>
        <div class="playground-results">
          {is_begun && <Progress organization_id={organization_id} progress={progress} rows={rows} />}
          <RowsTable rows={rows} column={chosen.column} />
        </div>
      </div>
      <ConfirmDialog
        title={question === 'file' ? 'Take another file?' : 'Start over?'}
        action="Delete the answers"
        is_open={question !== undefined}
        onClose={() => setQuestion(undefined)}
        onConfirm={async () => {
          if (question === 'file') return await removeFile();
          begin(chosen.column);
          await forgetAnswers(scope);
        }}
      >
        <p>
          The answers of this batch are deleted from this browser. Rows that are asked again are charged
          again.
        </p>
      </ConfirmDialog>
    </>
  );
}

function firstSetup(setup: Setup, work: KeptWork): BatchSetup {
  const { project_id, key_id } = keyOf(setup, { project_id: undefined, key_id: undefined });
  const [questions = null] = questionChoices(work);
  const [model] = setup.models;
  return {
    ...{ run_key: newRunKey(), column: null, questions, model: model?.id ?? '', mode: 'fast' },
    ...{ project_id, key_id: key_id ?? null },
  };
}

/** The questions of the playground: its saved requests, its draft and its examples. */
function QuestionChoice({
  organization_id,
  work,
  chosen,
  asked,
  complaint,
  is_disabled,
  onChoose,
}: {
  readonly organization_id: string;
  readonly work: KeptWork;
  readonly chosen: BatchSetup;
  readonly asked: ReturnType<typeof askedQuestions>;
  readonly complaint: string | undefined;
  readonly is_disabled: boolean;
  readonly onChoose: (chosen: BatchSetup) => void;
}) {
  const offered = questionChoices(work);
  const { questions } = chosen;
  const is_gone = questions !== null && !offered.some(({ value }) => value === questions.value);
  const choices = is_gone ? [questions, ...offered] : offered;
  return (
    <section class="panel padded playground-part" aria-label="Questions">
      <Select
        label="Questions"
        name="questions"
        help={
          <>
            Saved requests are made in the{' '}
            <a href={organizationPath(organization_id, 'playground')}>playground</a>.
          </>
        }
        options={choices.map(({ value, label }) => ({ value, label }))}
        value={questions?.value ?? ''}
        error={complaint}
        is_disabled={is_disabled}
        onChange={(value) =>
          onChoose({ ...chosen, questions: choices.find((one) => one.value === value) ?? null })
        }
      />
      <ul class="batch-questions">
        {asked.map(({ id, type, instructions }) => (
          <li key={id}>
            <code>{id}</code> <span class="muted">{type}</span> {instructions}
          </li>
        ))}
      </ul>
    </section>
  );
}

function RunButtons({
  progress: { state, answered, refused },
  total,
  onRun,
  onPause,
  onRestart,
}: {
  readonly progress: BatchProgress;
  readonly total: number;
  /** Null while there is something missing. */
  readonly onRun: (() => void) | null;
  readonly onPause: () => void;
  readonly onRestart: () => void;
}) {
  const done = answered + refused;
  if (state === 'running') return <Button onClick={onPause}>Pause</Button>;
  if (state === 'pausing') return <Button is_busy>Pausing</Button>;
  return (
    <>
      {done > 0 && <Button onClick={onRestart}>Start over</Button>}
      {done < total && (
        <Button kind="primary" is_disabled={onRun === null} onClick={() => onRun?.()}>
          {done === 0 ? 'Run' : 'Go on'}
        </Button>
      )}
    </>
  );
}

function priceText(price: BatchPrice | undefined): string {
  if (price === undefined) return '';
  const { input_tokens, cost_micros, is_exact } = price;
  const money = formatMoney(cost_micros);
  return `${is_exact ? '' : 'about '}${formatCount(input_tokens, 'token')} · ${money}`;
}
