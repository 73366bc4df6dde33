import { useEffect, useState } from 'preact/hooks';
import { microsOf } from '../../../contract/money.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { EmptyState } from '../components/states.tsx';
import { CreditLink } from '../credit-link.tsx';
import { formatCost, formatDuration, formatNumber } from '../format.ts';
import { AnswerCard, type AnswerColumn } from './answer-card.tsx';
import { hasOrder, runName, shownAnswer } from './asked.ts';
import type { Comparison, Outcome, Run } from './use-runs.ts';

/** The time after which the page explains why an answer can take long. */
const LONG_MS = 3_000;

interface ResultsProps {
  readonly organization_id: string;
  readonly comparison: Comparison | undefined;
  readonly is_running: boolean;
  /** Shows the recorded answers; null where there are none of this request, or it can be asked. */
  readonly onRecorded: (() => void) | null;
  readonly onBackward: () => void;
  readonly thresholdOf: (question_id: string) => number;
  readonly onThreshold: (question_id: string, threshold: number) => void;
}

/** The answers of all runs side by side, with the time and cost of each. */
export function Results({
  organization_id,
  comparison,
  is_running,
  onRecorded,
  onBackward,
  thresholdOf,
  onThreshold,
}: ResultsProps) {
  if (comparison === undefined) {
    return (
      <div class="panel">
        <EmptyState
          title="No answers yet"
          actions={
            onRecorded !== null && (
              <Button kind="primary" onClick={onRecorded}>
                Show recorded answers
              </Button>
            )
          }
        >
          {onRecorded === null
            ? 'Run the request: every option of every question gets a probability.'
            : 'See what an answer looks like before you have a key and credit.'}
        </EmptyState>
      </div>
    );
  }
  const { questions, runs, is_recorded } = comparison;
  const answered = runs.flatMap(({ outcome, ...run }) =>
    outcome.state === 'answered' ? [{ ...run, ...outcome }] : [],
  );
  return (
    <>
      <div class="panel padded playground-part">
        <header class="playground-part-head">
          <h2>Answers</h2>
          {answered.length > 0 && hasOrder(questions) && !is_recorded && (
            <Button size="small" is_disabled={is_running} onClick={onBackward}>
              Rerun with options reversed
            </Button>
          )}
        </header>
        {is_recorded && (
          <Notice title="These answers were recorded.">
            The model of this version gave them to this example. Nothing was asked now, and nothing is
            charged.
          </Notice>
        )}
        <RunTable runs={runs} />
        <IgnoredFields names={answered[0]?.ignored_fields ?? []} />
        <LeftOut tokens={Math.max(0, ...answered.map((run) => run.record_tokens_left_out))} />
      </div>
      {runs.map(({ model, mode, order, outcome }) => (
        <Trouble key={`${model} ${mode} ${order}`} organization_id={organization_id} outcome={outcome} />
      ))}
      {answered.length > 0 &&
        questions.map((question) => (
          <AnswerCard
            key={question.id}
            question={question}
            threshold={thresholdOf(question.id)}
            onThreshold={(threshold) => onThreshold(question.id, threshold)}
            columns={answered.flatMap(({ model, mode, order, decision }): readonly AnswerColumn[] => {
              const answer = shownAnswer(question, decision.answers, order);
              return answer === undefined ? [] : [{ model, mode, order, answer }];
            })}
          />
        ))}
    </>
  );
}

/**
 * A notice of unread fields: a misspelt field is not an error, and is charged. All runs have the same body.
 */
function IgnoredFields({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <Notice tone="warning" title="Some fields of the request were not read.">
      {names.map((name) => (
        <span key={name}>
          <code>{name}</code>{' '}
        </span>
      ))}
    </Notice>
  );
}

/** A notice of omitted tokens: a record that is too long is not an error, and its middle is not billed. */
function LeftOut({ tokens }: { readonly tokens: number }) {
  if (tokens === 0) return null;
  return (
    <Notice tone="warning" title="The record is longer than the model can read.">
      {formatNumber(tokens)} tokens of its middle were left out.
    </Notice>
  );
}

function RunTable({ runs }: { readonly runs: readonly Run[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the keyboard's focus.
    <section class="run-table" aria-label="What each run took" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Mode</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
            <th scope="col">Model</th>
            <th scope="col">Service</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={runName(run, runs)}>
              <th scope="row">{runName(run, runs)}</th>
              <RunCells outcome={run.outcome} />
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RunCells({ outcome }: { readonly outcome: Outcome }) {
  switch (outcome.state) {
    case 'answered': {
      const { decision, service_ms, request_id } = outcome;
      const { input_tokens, cost_usd } = decision.usage;
      return (
        <>
          <td title={request_id === null ? undefined : `Request ${request_id}`}>
            {formatNumber(input_tokens)}
          </td>
          <td>{formatCost(microsOf(cost_usd))}</td>
          <td>{formatDuration(Math.round(decision.latency_ms))}</td>
          <td>{service_ms === null ? '–' : formatDuration(Math.round(service_ms))}</td>
        </>
      );
    }
    case 'waiting':
      return <td colSpan={4}>Waits for the run before it</td>;
    case 'asking':
      return (
        <td colSpan={4}>
          <span class="spinner" aria-hidden="true" /> <Elapsed since_ms={outcome.since_ms} />
        </td>
      );
    case 'warming_up':
      return (
        <td colSpan={4}>
          <span class="spinner" aria-hidden="true" /> Warming up, asked again{' '}
          <Remaining until_ms={outcome.until_ms} />
        </td>
      );
    case 'failed':
      return (
        <td colSpan={4}>
          <Badge tone="danger">{outcome.error.code}</Badge>
        </td>
      );
    case 'aborted':
      return (
        <td colSpan={4}>
          <Badge>Aborted</Badge>
        </td>
      );
  }
}

/** A notice about a run without an answer. */
function Trouble({
  organization_id,
  outcome,
}: {
  readonly organization_id: string;
  readonly outcome: Outcome;
}) {
  if (outcome.state === 'warming_up') {
    return (
      <Notice tone="warning" title="The model is warming up.">
        It was idle. Your request is sent again when it is ready, and nothing is charged until then.
      </Notice>
    );
  }
  if (outcome.state === 'asking') return <LongWait since_ms={outcome.since_ms} />;
  if (outcome.state === 'aborted' && outcome.may_be_charged) {
    return (
      <Notice tone="warning" title="An aborted run may still be charged.">
        It is charged where the service has answered all the same.
      </Notice>
    );
  }
  if (outcome.state !== 'failed') return null;
  const { code, message, param, request_id } = outcome.error;
  return (
    <Notice
      tone="danger"
      title={message}
      request_id={request_id}
      actions={code === 'insufficient_credit' && <CreditLink organization_id={organization_id} />}
    >
      <code>{code}</code>
      {param !== null && (
        <>
          {' at '}
          <code>{param}</code>
        </>
      )}
      .{request_id !== null && ' Nothing was charged.'}
    </Notice>
  );
}

function LongWait({ since_ms }: { readonly since_ms: number }) {
  const now_ms = useNow(500);
  if (now_ms - since_ms < LONG_MS) return null;
  return (
    <Notice title="This takes longer than usual.">
      A model that was idle loads first, which can take a minute or more. Long records and many questions take
      longer, too.
    </Notice>
  );
}

function Elapsed({ since_ms }: { readonly since_ms: number }) {
  const now_ms = useNow(100);
  return <span class="number">Asking for {formatDuration(Math.max(0, now_ms - since_ms))}</span>;
}

function Remaining({ until_ms }: { readonly until_ms: number }) {
  const now_ms = useNow(500);
  return <span class="number">in {formatNumber(Math.max(0, Math.ceil((until_ms - now_ms) / 1_000)))} s</span>;
}

/** Returns the time, updated at that interval. */
function useNow(interval_ms: number): number {
  const [now_ms, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), interval_ms);
    return () => clearInterval(timer);
  }, [interval_ms]);
  return now_ms;
}
