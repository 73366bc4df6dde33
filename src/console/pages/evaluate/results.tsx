import { useState } from 'preact/hooks';
import { accuracy, expectedCalibrationError, meanLogLoss, reliabilityBins } from '../../../eval/metrics.ts';
import { wilsonInterval } from '../../../eval/wilson-interval.ts';
import type { QuestionType } from '../../../questions/types-and-modes.ts';
import { Notice } from '../components/notice.tsx';
import { SortableTable } from '../components/sortable-table.tsx';
import { EmptyState } from '../components/states.tsx';
import { Tile } from '../components/tile.tsx';
import { formatCount, formatNumber, formatPercent } from '../format.ts';
import { AutomaticAnswers } from './automatic-answers.tsx';
import { type Cell, ConfusionMatrix } from './confusion-matrix.tsx';
import { type EvaluatedQuestion, type JudgedRow, PROBABILITY_MIN } from './evaluated.ts';
import { JudgedRows } from './judged-rows.tsx';
import type { LabelledRow } from './labels.ts';
import { ReliabilityDiagram } from './reliability-diagram.tsx';

/** The probability that the reliability of a question is drawn by. */
const SAID = {
  noul: 'Probability of yes',
  choice: 'Probability of the answer',
  score: 'Probability of the answer',
} as const satisfies Record<QuestionType, string>;

/** How good the answers are, for all questions and for each. */
export function Results({
  evaluated,
  rows,
}: {
  readonly evaluated: readonly EvaluatedQuestion[];
  readonly rows: readonly LabelledRow[];
}) {
  const [chosen, setChosen] = useState<string>();
  const shown = evaluated.find(({ key }) => key === chosen) ?? evaluated[0];
  if (shown === undefined) return null;
  return (
    <>
      {evaluated.length > 1 && <QuestionList evaluated={evaluated} shown={shown} onChoose={setChosen} />}
      <QuestionResults key={shown.key} evaluated={shown} rows={rows} />
    </>
  );
}

/** All questions, of which one is chosen. A file of cases can have thousands. */
function QuestionList({
  evaluated,
  shown,
  onChoose,
}: {
  readonly evaluated: readonly EvaluatedQuestion[];
  readonly shown: EvaluatedQuestion;
  readonly onChoose: (key: string) => void;
}) {
  return (
    <SortableTable
      caption="Questions"
      columns={[
        {
          title: 'Question',
          cell: ({ key, name }: EvaluatedQuestion) => (
            <button
              type="button"
              class="text-button"
              aria-pressed={key === shown.key}
              onClick={() => onChoose(key)}
            >
              {name}
            </button>
          ),
          sortBy: ({ name }) => name,
          is_name: true,
        },
        {
          title: 'Answers',
          cell: ({ judged }) => formatNumber(judged.length),
          sortBy: ({ judged }) => judged.length,
          is_at_end: true,
        },
        {
          title: 'Accuracy',
          cell: ({ judged }) => accuracyText(judged),
          // Questions without an answer are the last ones.
          sortBy: ({ judged }) => (judged.length === 0 ? 2 : accuracy(judged)),
          is_at_end: true,
        },
        { title: '95% interval', cell: ({ judged }) => intervalText(judged), is_at_end: true },
      ]}
      rows={evaluated}
      keyOf={({ key }) => key}
    />
  );
}

function QuestionResults({
  evaluated,
  rows,
}: {
  readonly evaluated: EvaluatedQuestion;
  readonly rows: readonly LabelledRow[];
}) {
  const [cell, setCell] = useState<Cell | null>(null);
  const { name, judged, class_names, conflicts } = evaluated;
  if (judged.length === 0)
    return <EmptyState title={`No row with a right answer to ${name} is answered yet`} />;
  return (
    <>
      <h2 class="evaluate-question">{name}</h2>
      {conflicts > 0 && (
        <Notice
          tone="warning"
          title={`${formatCount(conflicts, 'record has', 'records have')} more than one right answer.`}
        >
          Each row counts by itself here, so that not all of them can be right.
        </Notice>
      )}
      <dl class="tiles">
        <Tile title="Accuracy" value={accuracyText(judged)} note={`95% interval ${intervalText(judged)}`} />
        <Tile
          title="Answers"
          value={formatNumber(judged.length)}
          note={`${formatNumber(judged.filter(isWrong).length)} wrong`}
        />
        <Tile
          title="Calibration error"
          value={formatNumber(expectedCalibrationError(judged), 3)}
          note="Mean gap between what was said and what was so"
        />
        <Tile
          title="NLL"
          value={formatNumber(meanLogLoss(judged, PROBABILITY_MIN), 3)}
          note="How far the probabilities are from the truth, in nats; zero counts as half a millionth"
        />
      </dl>
      <AutomaticAnswers evaluated={evaluated} />
      <div class="evaluate-diagrams">
        <ConfusionMatrix judged={judged} class_names={class_names} chosen={cell} onChoose={setCell} />
        <ReliabilityDiagram
          bins={reliabilityBins(judged)}
          answers={judged.length}
          said={SAID[evaluated.question.type]}
        />
      </div>
      <JudgedRows evaluated={evaluated} rows={rows} cell={cell} onClear={() => setCell(null)} />
    </>
  );
}

function isWrong({ predicted, answer }: JudgedRow): boolean {
  return predicted !== answer;
}

function accuracyText(judged: readonly JudgedRow[]): string {
  return judged.length === 0 ? '–' : formatPercent(accuracy(judged));
}

function intervalText(judged: readonly JudgedRow[]): string {
  if (judged.length === 0) return '–';
  const right = judged.filter((one) => !isWrong(one)).length;
  const { low, high } = wilsonInterval(right, judged.length);
  return `${formatPercent(low)} to ${formatPercent(high)}`;
}
