import { useId, useState } from 'preact/hooks';
import { AUTOMATIC_ERROR_MAX, automaticAnswers, automaticThreshold } from '../../../eval/abstaining.ts';
import { wilsonInterval } from '../../../eval/wilson-interval.ts';
import { Meter } from '../components/meter.tsx';
import { formatNumber, formatPercent } from '../format.ts';
import { automaticCondition } from './automatic-condition.ts';
import type { EvaluatedQuestion } from './evaluated.ts';

/** The largest share of wrong answers that can be chosen. */
const ERROR_MAX = 0.3;

/** How many answers can be taken without a look, where so many of them may be wrong. */
export function AutomaticAnswers({
  evaluated: { judged, question },
}: {
  readonly evaluated: EvaluatedQuestion;
}) {
  const id = useId();
  const [error_max, setErrorMax] = useState<number>(AUTOMATIC_ERROR_MAX);
  const threshold = automaticThreshold(judged, error_max);
  const { share, error_rate } = automaticAnswers(judged, () => threshold);
  const count = Math.round(share * judged.length);
  const wrong = Math.round((error_rate ?? 0) * count);
  const { low, high } = wilsonInterval(wrong, count);
  return (
    <section class="panel padded playground-part" aria-label="Automatic answers">
      <h3>Automatic answers</h3>
      <div class="threshold-slider">
        <label for={id}>Wrong at most</label>
        <input
          id={id}
          type="range"
          min="0"
          max={ERROR_MAX}
          step="0.01"
          value={error_max}
          aria-valuetext={formatPercent(error_max, 0)}
          onInput={(event) => setErrorMax(event.currentTarget.valueAsNumber)}
        />
        <span class="number">{formatPercent(error_max, 0)}</span>
      </div>
      <Meter
        label="Automatic"
        value={count}
        limit={judged.length}
        format={(value) => formatNumber(value)}
        is_goal
      />
      {threshold === null ? (
        <p>None: too many of the surest answers are wrong.</p>
      ) : (
        <>
          <p>
            {formatPercent(share)} of the answers, {automaticCondition(question.type, threshold)}. Wrong among
            them: {formatNumber(wrong)}. On other records {formatPercent(low)} to {formatPercent(high)} may be
            wrong.
          </p>
          <p class="help">The threshold was chosen on these answers, which flatters it.</p>
        </>
      )}
    </section>
  );
}
