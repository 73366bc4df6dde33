import type { AnswerOf, OfOrganization } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Table } from '../components/table.tsx';
import { formatCount, formatNumber, formatPercent } from '../format.ts';

/** A tuned question with its answers of the last seven days, beside those at its tuning. */
export type Drift = AnswerOf<OfOrganization['own-models']['get']>['items'][number]['drifts'][number];

/** The questions and answers that are shown: those that moved most. */
const SHOWN_MAX = 20;

/** The summary of a model with at least one compared question: "Moved: index 0.31 on 2 of 3 questions". */
export function DriftSummary({ drifts }: { readonly drifts: readonly Drift[] }) {
  const moved = drifts.filter(({ has_moved }) => has_moved).length;
  if (moved === 0) return <>As at tuning</>;
  const index = formatNumber(Math.max(...drifts.map((drift) => drift.index)), 2);
  return (
    <>
      <Badge tone="warning">Moved</Badge> index {index} on {moved} of {formatCount(drifts.length, 'question')}
    </>
  );
}

/** Shows each compared question of a model, those that moved most first. */
export function DriftDialog({
  id,
  drifts,
  is_open,
  onClose,
}: {
  readonly id: string;
  readonly drifts: readonly Drift[];
  readonly is_open: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`Answers of ${id}`} is_open={is_open} onClose={onClose}>
      <p class="help">
        Where the answers of the last seven days are others than at tuning, the records may be, too. Check
        some by hand, and tune again. The index (population stability index) leaves out what chance explains;
        above 0.2 the answers have moved.
      </p>
      {drifts
        .toSorted((one, other) => other.index - one.index)
        .slice(0, SHOWN_MAX)
        .map((drift) => (
          <section key={`${drift.mode} ${drift.question}`} class="stack">
            <h3>{drift.question}</h3>
            <p>
              {drift.has_moved && <Badge tone="warning">Moved</Badge>} Index {formatNumber(drift.index, 2)} in{' '}
              {drift.mode} mode: {formatCount(drift.answers, 'answer')} beside{' '}
              {formatCount(drift.labels, 'label')}.
            </p>
            <Table
              caption={drift.question}
              rows={drift.classes.toSorted((one, other) => moveOf(other) - moveOf(one)).slice(0, SHOWN_MAX)}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Answer', cell: ({ name }) => name, is_name: true },
                {
                  title: 'At tuning',
                  cell: ({ share_at_tuning }) => formatPercent(share_at_tuning),
                  is_at_end: true,
                },
                { title: 'Last 7 days', cell: ({ share }) => formatPercent(share), is_at_end: true },
              ]}
            />
          </section>
        ))}
    </Dialog>
  );
}

function moveOf({ share, share_at_tuning }: Drift['classes'][number]): number {
  return Math.abs(share - share_at_tuning);
}
