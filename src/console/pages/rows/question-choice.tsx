import { Select } from '../components/field.tsx';
import { organizationPath } from '../paths.ts';
import type { AskedQuestion } from '../playground/asked.ts';
import type { KeptWork } from '../playground/kept-work.ts';
import { questionChoices } from './questions.ts';
import type { ChosenQuestions, RunSetup } from './run-setup.ts';

/** The questions of the playground: its saved requests, its draft and its examples. */
export function QuestionChoice({
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
  readonly chosen: Pick<RunSetup, 'questions'>;
  readonly asked: readonly AskedQuestion[];
  readonly complaint: string | undefined;
  readonly is_disabled: boolean;
  readonly onChoose: (questions: ChosenQuestions | null) => void;
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
        onChange={(value) => onChoose(choices.find((one) => one.value === value) ?? null)}
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
