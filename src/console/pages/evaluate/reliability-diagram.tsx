import type { ReliabilityBin } from '../../../eval/metrics.ts';
import { formatNumber, formatPercent } from '../format.ts';

/** The side of the square, and the margin for its axes, in units of the drawing. */
const SIDE = 240;
const MARGIN = 40;
const WIDTH = SIDE + 2 * MARGIN;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

const x = (value: number) => MARGIN + value * SIDE;
const y = (value: number) => MARGIN / 2 + (1 - value) * SIDE;

/** Probabilities against outcomes: on the diagonal, probabilities are true. The same numbers are a table. */
export function ReliabilityDiagram({
  bins,
  answers,
  said,
}: {
  readonly bins: readonly ReliabilityBin[];
  readonly answers: number;
  /** The meaning of the predicted probability. */
  readonly said: string;
}) {
  return (
    <section class="panel padded playground-part" aria-label="Reliability">
      <h3>Reliability</h3>
      <p class="help">
        On the dashed line, probabilities are true. A dot below it was too sure. Its area is its share of the
        answers.
      </p>
      <svg
        class="reliability"
        viewBox={`0 0 ${WIDTH} ${WIDTH}`}
        role="img"
        aria-label={`Reliability: ${said}`}
      >
        {TICKS.map((at) => (
          <g key={at}>
            <line class="reliability-grid" x1={x(0)} y1={y(at)} x2={x(1)} y2={y(at)} />
            <line class="reliability-grid" x1={x(at)} y1={y(0)} x2={x(at)} y2={y(1)} />
            <text x={x(0) - 6} y={y(at) + 4} text-anchor="end">
              {formatPercent(at, 0)}
            </text>
            <text x={x(at)} y={y(0) + 16} text-anchor="middle">
              {formatPercent(at, 0)}
            </text>
          </g>
        ))}
        <line class="reliability-true" x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
        <polyline
          class="reliability-line"
          points={bins.map(({ predicted, observed }) => `${x(predicted)},${y(observed)}`).join(' ')}
        />
        {bins.map(({ from, predicted, observed, count }) => (
          <circle
            key={from}
            class="reliability-dot"
            cx={x(predicted)}
            cy={y(observed)}
            r={Math.max(3, 18 * Math.sqrt(count / answers))}
          />
        ))}
        <text x={x(0.5)} y={y(0) + 34} text-anchor="middle">
          {said}
        </text>
      </svg>
      <details class="quiet-details">
        <summary>As a table</summary>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{said}</th>
              <th scope="col" class="at-end">
                Answers
              </th>
              <th scope="col" class="at-end">
                Said
              </th>
              <th scope="col" class="at-end">
                So
              </th>
            </tr>
          </thead>
          <tbody>
            {bins.map(({ from, to, count, predicted, observed }) => (
              <tr key={from}>
                <td data-title={said}>
                  {formatPercent(from, 0)} to {formatPercent(to, 0)}
                </td>
                <td data-title="Answers" class="at-end">
                  {formatNumber(count)}
                </td>
                <td data-title="Said" class="at-end">
                  {formatPercent(predicted)}
                </td>
                <td data-title="So" class="at-end">
                  {formatPercent(observed)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
}
