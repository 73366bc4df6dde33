import type { ComponentChildren } from 'preact';
import type { AnswerOf, OfOrganization } from '../client.ts';
import { ButtonLink } from '../components/button.tsx';
import { CopyText } from '../components/copy-button.tsx';
import { Section } from '../components/page-header.tsx';
import { Time } from '../components/time.tsx';
import { organizationPath } from '../paths.ts';
import { may } from '../session.ts';
import { curlLine } from './curl-line.ts';

/** The time of each first step; null for one that is still to do. */
export type Steps = AnswerOf<OfOrganization['first-steps']['get']>;

/** Returns true if the organization has done all first steps. */
export function areDone({ credit_added_at_ms, key_created_at_ms, first_answer_at_ms }: Steps): boolean {
  return credit_added_at_ms !== null && key_created_at_ms !== null && first_answer_at_ms !== null;
}

interface StepsProps {
  readonly organization_id: string;
  readonly steps: Steps;
}

/** The command of the last step, for those who have done them all. */
export function CommandAgain({ first_answer_at_ms }: Pick<Steps, 'first_answer_at_ms'>) {
  return (
    <details class="quiet-details">
      <summary>
        Your first answer came <Time time_ms={first_answer_at_ms} />. Show the command again
      </summary>
      <CopyText text={curlLine(location.origin)} is_block />
    </details>
  );
}

/** The first steps, each ticked once it is done. */
export function FirstSteps({ organization_id, steps }: StepsProps) {
  const link = (page: string, text: string, is_next: boolean) => (
    <ButtonLink href={organizationPath(organization_id, page)} kind={is_next ? 'primary' : 'secondary'}>
      {text}
    </ButtonLink>
  );
  return (
    <Section title="First steps" description="Three steps to your first answer. Each ticks itself off.">
      <ol class="panel steps">
        <Step title="Add credit" done_at_ms={steps.credit_added_at_ms}>
          <p>Requests are paid from credit; $5.00 is enough for the first ones.</p>
          {may('top_up') ? (
            link('billing', 'Add credit', true)
          ) : (
            <p class="muted">An owner, an admin or a billing member can do it.</p>
          )}
        </Step>
        <Step title="Create a key" done_at_ms={steps.key_created_at_ms}>
          <p>A key is how your programs sign in. It is shown once.</p>
          {may('create_keys') ? (
            link('keys', 'Create a key', steps.credit_added_at_ms !== null)
          ) : (
            <p class="muted">An owner, an admin or a developer can do it.</p>
          )}
        </Step>
        <Step title="Ask" done_at_ms={steps.first_answer_at_ms} keeps_content>
          <p>Put your key into the first line, and run this in a terminal:</p>
          <CopyText text={curlLine(location.origin)} is_block />
          {may('use_keys') && (
            <p>
              Or ask in the <a href={organizationPath(organization_id, 'playground')}>playground</a>.
            </p>
          )}
        </Step>
      </ol>
    </Section>
  );
}

function Step({
  title,
  done_at_ms,
  keeps_content = false,
  children,
}: {
  readonly title: string;
  readonly done_at_ms: number | null;
  /** True to show the instructions of a done step too. */
  readonly keeps_content?: boolean;
  readonly children: ComponentChildren;
}) {
  const is_done = done_at_ms !== null;
  return (
    <li class={is_done ? 'step is-done' : 'step'}>
      <span class="step-mark">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M4 8.5l3 3 5.5-7" />
        </svg>
      </span>
      <div class="step-text">
        <h3>
          {title}{' '}
          {is_done && (
            <span class="step-time">
              done <Time time_ms={done_at_ms} />
            </span>
          )}
        </h3>
        {(!is_done || keeps_content) && children}
      </div>
    </li>
  );
}
