import { useEffect, useRef, useState } from 'preact/hooks';
import type { HashKey } from '../../../hashing/half-siphash.ts';
import { Button } from '../components/button.tsx';
import { Meter } from '../components/meter.tsx';
import { Notice } from '../components/notice.tsx';
import { SortableTable } from '../components/sortable-table.tsx';
import { EmptyState } from '../components/states.tsx';
import { attempt } from '../components/toast.tsx';
import { formatCount, formatNumber, formatPercent } from '../format.ts';
import type { RowFile } from '../rows/row-file.ts';
import { saveFile } from '../save-file.ts';
import { may } from '../session.ts';
import { AddOwnModel } from './add-own-model.tsx';
import type { EvaluatedQuestion } from './evaluated.ts';
import { fitInWorker } from './fit-in-worker.ts';
import { fitQuestions, TUNING_SEED } from './fit-questions.ts';
import type { FittedQuestion, TuningFit } from './fit-tuning.ts';
import type { EvaluationSetup } from './setup.ts';
import { tuningBase } from './tuning-base.ts';

interface TuningProps {
  readonly organization_id: string;
  readonly file: RowFile;
  readonly chosen: EvaluationSetup;
  readonly evaluated: readonly EvaluatedQuestion[];
}

type TuningState =
  | { readonly at: 'start' | 'no_base' | 'other_base' | 'unknown_base' | 'insecure' }
  | { readonly at: 'fitting'; readonly done: number; readonly total: number }
  | { readonly at: 'done'; readonly fit: TuningFit };

/** Fits corrections on the labels of an evaluation, in the browser, and says what each is worth. */
export function Tuning(props: TuningProps) {
  const [state, setState] = useState<TuningState>({ at: 'start' });
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const tune = async () => {
    const { signal } = leaving.current;
    try {
      setState(await fitOf(props, signal, (done, total) => setState({ at: 'fitting', done, total })));
    } catch (thrown) {
      if (signal.aborted) return;
      setState({ at: 'start' });
      throw thrown;
    }
  };
  return (
    <section class="panel padded playground-part" aria-label="Tune">
      <h2>Tune</h2>
      <p class="help">
        A correction of the model's answers, fitted on these right answers in this browser, free of charge.
        Each question is measured by corrections that the measured records had no part in.
      </p>
      {state.at === 'fitting' && (
        <Meter label="Fits" value={state.done} limit={state.total} format={formatNumber} is_goal />
      )}
      {state.at === 'no_base' && (
        <Notice tone="warning" title={`${props.chosen.model} cannot be tuned here.`}>
          Choose a model with weights of its own, which is not tuned itself, and evaluate with it.
        </Notice>
      )}
      {state.at === 'unknown_base' && (
        <Notice tone="warning" title="Nothing tells which weights gave these answers.">
          The model was not loaded when they began, or they are of an earlier version. Forget the answers and
          evaluate again.
        </Notice>
      )}
      {state.at === 'other_base' && (
        <Notice
          tone="warning"
          title={`${props.chosen.model} has other weights, or another calibration, than when it answered.`}
        >
          Forget the answers and evaluate again.
        </Notice>
      )}
      {state.at === 'insecure' && <Notice tone="warning" title="Tuning needs a connection by https." />}
      {state.at === 'done' ? (
        <Fitted {...props} fit={state.fit} />
      ) : (
        <div>
          <Button is_busy={state.at === 'fitting'} onClick={() => attempt(tune)}>
            Tune on these answers
          </Button>
        </div>
      )}
    </section>
  );
}

async function fitOf(
  { organization_id, file, chosen, evaluated }: TuningProps,
  signal: AbortSignal,
  onProgress: (done: number, total: number) => void,
): Promise<TuningState> {
  if (!isSecureContext) return { at: 'insecure' };
  const { model, mode, base } = chosen;
  const now = await tuningBase(organization_id, model);
  if (base === undefined) return { at: now === null ? 'no_base' : 'unknown_base' };
  // A model that is not loaded now may still be the one that answered; adding the tuning checks that.
  if (now !== null && JSON.stringify(now) !== JSON.stringify(base)) return { at: 'other_base' };
  const cases_sha256 = hex(await sha256(file.rows.map((row) => `${row}\n`).join('')));
  const fit = await fitInWorker(
    {
      ...{ base, model, mode, cases_sha256, records: file.rows.length },
      hash_key: await hashKeyOf(cases_sha256),
      questions: fitQuestions(evaluated),
    },
    { signal, onProgress },
  );
  return { at: 'done', fit };
}

/** Returns a key for hashed words as `tds tune` does, which depends only on the rows. */
async function hashKeyOf(cases_sha256: string): Promise<HashKey> {
  const view = new DataView(await sha256(`tds-tuning ${cases_sha256} ${TUNING_SEED}`));
  return [view.getInt32(0, true), view.getInt32(4, true)];
}

async function sha256(text: string): Promise<ArrayBuffer> {
  return await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function Fitted({
  organization_id,
  file: { name },
  chosen,
  evaluated,
  fit: { questions, text },
}: TuningProps & { readonly fit: TuningFit }) {
  const conflicts = questions.reduce((sum, one) => sum + one.conflicts, 0);
  const change = (one: FittedQuestion, textOf: (of: 'before' | 'after') => string) =>
    typeof one.fitted === 'string' ? '–' : `${textOf('before')} → ${textOf('after')}`;
  const measure = ({ fitted }: FittedQuestion, of: 'before' | 'after') =>
    typeof fitted === 'string' ? undefined : fitted[of];
  return (
    <>
      <SortableTable
        caption="Effect of tuning"
        columns={[
          { title: 'Question', cell: (one: FittedQuestion) => one.name, is_name: true },
          {
            title: 'Labels',
            cell: ({ labels }) => formatNumber(labels),
            sortBy: ({ labels }) => labels,
            is_at_end: true,
          },
          {
            title: 'Accuracy',
            cell: (one) => change(one, (of) => formatPercent(measure(one, of)?.accuracy ?? 0)),
            is_at_end: true,
          },
          {
            title: 'NLL',
            cell: (one) => change(one, (of) => formatNumber(measure(one, of)?.loss ?? 0, 3)),
            is_at_end: true,
          },
          { title: 'Correction', cell: partsText },
          { title: '100 more labels', cell: gainText, is_at_end: true },
        ]}
        rows={questions}
        keyOf={({ key }) => key}
        empty={<EmptyState title="No questions" />}
      />
      {conflicts > 0 && (
        <p class="help">
          {formatCount(conflicts, 'record has', 'records have')} more than one right answer, and counts once,
          with the shares of its answers.
        </p>
      )}
      {text === null ? (
        <Notice title="No correction is better than the model as it is.">More right answers may help.</Notice>
      ) : (
        <>
          <div>
            <Button onClick={() => saveFile([text], `${name.replace(/\.\w+$/, '')}.tuning`)}>
              Download the tuning
            </Button>
          </div>
          <p class="help">
            The file holds the questions and hashed words, and no record: keep it as you keep the right
            answers. {!may('manage_models') && 'An owner or admin can add it to the models.'}
          </p>
          {may('manage_models') && (
            <AddOwnModel
              {...{ organization_id, chosen, tuning: text, file_name: name }}
              example={evaluated.find((one) => isCorrected(one, questions))}
            />
          )}
        </>
      )}
    </>
  );
}

function isCorrected({ key }: EvaluatedQuestion, questions: readonly FittedQuestion[]): boolean {
  return questions.some(
    (one) => one.key === key && typeof one.fitted !== 'string' && one.fitted.parts.length > 0,
  );
}

function partsText({ fitted }: FittedQuestion): string {
  if (fitted === 'too_few_labels') return 'None: fewer than 8 right answers';
  if (fitted === 'one_class') return 'None: all right answers are the same';
  return fitted.parts.length === 0 ? 'None: no better than the model' : fitted.parts.join(', ');
}

function gainText({ fitted }: FittedQuestion): string {
  if (typeof fitted === 'string' || fitted.gain_of_100_labels === null) return '–';
  return `+${formatPercent(fitted.gain_of_100_labels)}`;
}
