import type { ReliabilityBin } from './metrics.ts';
import type { EvalReport, Results } from './report.ts';
import {
  ABSTAINING_TITLE,
  abstainingTable,
  servedName,
  setTable,
  stabilityTable,
  summaryLines,
  type Table,
  typeTable,
} from './report-text.ts';

const STYLE = `
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:84rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.25rem .75rem;text-align:left;border-bottom:1px solid #e3e6ea}th{font-weight:600}
.diagrams{display:flex;flex-wrap:wrap;gap:1.5rem}figure{margin:0}figcaption{font-weight:600}
svg text{font:11px system-ui,sans-serif;fill:#57606a}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}svg text{fill:#9da7b3}}
`;

/** The side of a diagram's square, and the margin for its axes, in pixels. */
const SIDE = 240;
const MARGIN = 36;

/**
 * Returns the report as one self-contained HTML page, with its style and diagrams. Texts are escaped, because the
 * name of a file or a set may contain markup.
 */
export function htmlReport(report: EvalReport): string {
  const title = `Evaluation: ${report.cases.file}, ${report.mode}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${Bun.escapeHTML(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${Bun.escapeHTML(title)}</h1>
${summaryLines(report)
  .map((line) => `<p>${Bun.escapeHTML(line)}</p>`)
  .join('\n')}
<h2>By question type</h2>
<p>In brackets: 95% bootstrap intervals over records. Probabilities are the engine's, before a noul is committed to one side.</p>
${tableHtml(typeTable(report))}
<h2>${Bun.escapeHTML(ABSTAINING_TITLE)}</h2>
<p>The threshold says which answers of the service may be taken automatically: by the noul, or by the largest of the probabilities. It was chosen on these questions, which flatters it. Out of fold, each question is judged by a threshold that it had no part in.</p>
${tableHtml(abstainingTable(report))}
<h2>Reliability</h2>
<p>What the model said against what was so: the probability of yes for a noul, the confidence in the answer otherwise. The area of a dot is the share of its questions; on the line, probabilities are true.</p>
${diagrams('uncalibrated', report.uncalibrated)}
${report.calibrated === null ? '' : diagrams(servedName(report), report.calibrated)}
<h2>Steadiness</h2>
<p>Changes of a request that should leave its answers as they were.</p>
${tableHtml(stabilityTable(report))}
<h2>By set</h2>
${tableHtml(setTable(report))}
</body>
</html>
`;
}

function tableHtml([headings = [], ...rows]: Table): string {
  const cells = (row: readonly string[], tag: 'th' | 'td') =>
    row.map((cell) => `<${tag}>${Bun.escapeHTML(cell)}</${tag}>`).join('');
  const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
  return `<div class="scroll"><table><thead><tr>${cells(headings, 'th')}</tr></thead><tbody>\n${body}\n</tbody></table></div>`;
}

function diagrams(title: string, results: Results): string {
  const figures = results.types.map(
    ({ type, questions, reliability, metrics }) =>
      `<figure><figcaption>${title}: ${type}, ECE ${metrics.expected_calibration_error.value.toFixed(3)}</figcaption>${reliabilityDiagram(reliability, questions)}</figure>`,
  );
  return `<div class="diagrams">${figures.join('\n')}</div>`;
}

/** Returns a reliability diagram as SVG: a dot for each bin over the diagonal of perfect calibration. */
function reliabilityDiagram(bins: readonly ReliabilityBin[], questions: number): string {
  const x = (value: number) => (MARGIN + value * SIDE).toFixed(1);
  const y = (value: number) => (MARGIN / 2 + (1 - value) * SIDE).toFixed(1);
  const line = (x1: number, y1: number, x2: number, y2: number, style: string) =>
    `<line x1="${x(x1)}" y1="${y(y1)}" x2="${x(x2)}" y2="${y(y2)}" ${style}/>`;
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (at) =>
      `${line(0, at, 1, at, 'stroke="#8b949e" stroke-opacity=".25"')}${line(at, 0, at, 1, 'stroke="#8b949e" stroke-opacity=".25"')}` +
      `<text x="${MARGIN - 6}" y="${Number(y(at)) + 4}" text-anchor="end">${at}</text>` +
      `<text x="${x(at)}" y="${Number(y(0)) + 14}" text-anchor="middle">${at}</text>`,
  );
  const dots = bins.map((bin) => {
    const radius = Math.max(2, 18 * Math.sqrt(bin.count / questions));
    const label = `${bin.count} questions: said ${bin.predicted.toFixed(3)}, was ${bin.observed.toFixed(3)}`;
    return `<circle cx="${x(bin.predicted)}" cy="${y(bin.observed)}" r="${radius.toFixed(1)}" fill="#2f81f7" fill-opacity=".6" stroke="#2f81f7"><title>${label}</title></circle>`;
  });
  const path = bins.map((bin) => `${x(bin.predicted)},${y(bin.observed)}`).join(' ');
  const width = SIDE + MARGIN * 1.5;
  const height = SIDE + MARGIN * 1.5;
  return (
    `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="reliability diagram">${grid.join('')}` +
    `${line(0, 0, 1, 1, 'stroke="#8b949e" stroke-dasharray="4 4"')}<polyline points="${path}" fill="none" stroke="#2f81f7"/>${dots.join('')}` +
    `<text x="${x(0.5)}" y="${height - 4}" text-anchor="middle">said</text>` +
    `<text x="${MARGIN / 2}" y="${MARGIN / 3}">was so</text></svg>`
  );
}
