import { useState } from 'preact/hooks';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { ProbabilityBar } from '../components/meter.tsx';
import { formatNumber, formatPercent } from '../format.ts';
import {
  type AskedQuestion,
  isOther,
  largestChange,
  runName,
  type Share,
  type ShownAnswer,
} from './asked.ts';
import { ThresholdSlider } from './threshold-slider.tsx';
import type { Run } from './use-runs.ts';

/** The number of options above which only the likeliest are shown at first. */
const SHOWN_MAX = 10;

/** One run's answer to the question. */
export interface AnswerColumn extends Pick<Run, 'model' | 'mode' | 'order'> {
  readonly answer: ShownAnswer;
}

/** The answers to one question, a column for each run. */
export function AnswerCard({
  question,
  columns,
  threshold,
  onThreshold,
}: {
  readonly question: AskedQuestion;
  readonly columns: readonly AnswerColumn[];
  readonly threshold: number;
  readonly onThreshold: (threshold: number) => void;
}) {
  const [shows_all, setShowsAll] = useState(false);
  const count = question.labels.length;
  // A yes/no question has no order, so its backward answers are omitted.
  const shown = columns.filter(({ order }) => count > 0 || order === 'as_written');
  const [first] = shown;
  return (
    <section class="panel padded answer" aria-label={`Answers to ${question.id}`}>
      <header class="answer-head">
        <h3>
          <code>{question.id}</code>
        </h3>
        <p class="muted">{question.instructions}</p>
      </header>
      <div class="answer-columns">
        {shown.map((column) => {
          const { model, mode, order, answer } = column;
          const written = columns.find(
            (one) => one.model === model && one.mode === mode && one.order === 'as_written',
          );
          return (
            <div key={runName(column, columns)} class="answer-column">
              {shown.length > 1 && (
                <p class="answer-run">
                  {runName(column, columns)}
                  {first !== undefined && column !== first && isOther(first.answer, answer, threshold) && (
                    <Badge tone="warning">Other answer</Badge>
                  )}
                </p>
              )}
              <Answer answer={answer} threshold={threshold} shows_all={shows_all} />
              {order === 'reversed' && written !== undefined && count > 0 && (
                <p class="help">
                  The order moves it by up to {formatNumber(100 * largestChange(written.answer, answer), 1)}{' '}
                  points.
                </p>
              )}
            </div>
          );
        })}
      </div>
      {count === 0 && <ThresholdSlider label={question.id} value={threshold} onChange={onThreshold} />}
      {count > SHOWN_MAX && (
        <div>
          <Button size="small" onClick={() => setShowsAll(!shows_all)}>
            {shows_all ? `Show the likeliest ${SHOWN_MAX}` : `Show all ${formatNumber(count)}`}
          </Button>
        </div>
      )}
    </section>
  );
}

function Answer({
  answer,
  threshold,
  shows_all,
}: {
  readonly answer: ShownAnswer;
  readonly threshold: number;
  readonly shows_all: boolean;
}) {
  switch (answer.type) {
    case 'noul': {
      const is_yes = answer.yes >= threshold;
      return (
        <>
          <p class="answer-main">
            <strong>{is_yes ? 'Yes' : 'No'}</strong>
            <span class="muted number">
              {is_yes ? 'at or above' : 'below'} {formatPercent(threshold, 0)}
            </span>
          </p>
          <ProbabilityBar label="Yes" probability={answer.yes} threshold={threshold} is_answer={is_yes} />
        </>
      );
    }
    case 'choice':
      return (
        <>
          <p class="answer-main">
            <strong>{answer.choice}</strong>
            <span class="muted number">confidence {formatPercent(answer.confidence)}</span>
          </p>
          <Shares shares={answer.shares} shows_all={shows_all} />
        </>
      );
    case 'score':
      return (
        <>
          <p class="answer-main">
            <strong class="number">{formatNumber(answer.score, 2)}</strong>
            <span class="muted number">
              of {formatNumber(answer.shares.length - 1)}, confidence {formatPercent(answer.confidence)}
            </span>
          </p>
          <Shares shares={answer.shares} shows_all={shows_all} />
        </>
      );
  }
}

function Shares({ shares, shows_all }: { readonly shares: readonly Share[]; readonly shows_all: boolean }) {
  const shown =
    shows_all || shares.length <= SHOWN_MAX
      ? shares
      : shares.toSorted((a, b) => b.probability - a.probability).slice(0, SHOWN_MAX);
  return (
    <div>
      {shown.map((share) => (
        <ProbabilityBar key={share.label} {...share} />
      ))}
    </div>
  );
}
