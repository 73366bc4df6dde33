import { useState } from 'preact/hooks';
import { QUESTION_TYPES, type QuestionType } from '../../../questions/types-and-modes.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { type DraftQuestion, duplicateOf, moved, newQuestion } from './draft.ts';
import { QuestionFields } from './question-fields.tsx';

/** The names of the types on the page. */
export const TYPE_NAMES: Readonly<Record<QuestionType, string>> = {
  noul: 'Yes or no',
  choice: 'Choice',
  score: 'Score',
};

/** All questions of the request: each is one line until it is opened. */
export function QuestionsEditor({
  questions,
  errors,
  onChange,
}: {
  readonly questions: readonly DraftQuestion[];
  /** The errors by the names of fields. */
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (questions: readonly DraftQuestion[]) => void;
}) {
  const [opened, setOpened] = useState<readonly number[]>([]);
  const ids = questions.map(({ id }) => id);
  const add = (question: DraftQuestion, at: number) => {
    onChange(questions.toSpliced(at, 0, question));
    setOpened([...opened, question.key]);
  };
  const own_error = errors.get('questions');
  return (
    <section class="panel padded playground-part" aria-label="Questions">
      <header class="playground-part-head">
        <h2>Questions</h2>
        <span class="muted number">{questions.length}</span>
      </header>
      {questions.length === 0 && <p class="muted">Add the first question below.</p>}
      <ol class="question-list">
        {questions.map((question, at) => {
          const has_error = [...errors.keys()].some((name) => isFieldOf(question, name));
          const is_open = has_error || opened.includes(question.key);
          return (
            <li key={question.key} class="question">
              <h3>
                <button
                  type="button"
                  class="question-head"
                  aria-expanded={is_open}
                  onClick={() =>
                    setOpened(
                      is_open ? opened.filter((key) => key !== question.key) : [...opened, question.key],
                    )
                  }
                >
                  <span class="question-title">
                    <code>{question.id === '' ? 'no name' : question.id}</code>
                    <span class="question-instructions">{question.instructions}</span>
                  </span>
                  <Badge>{TYPE_NAMES[question.type]}</Badge>
                  <svg class="chevron" viewBox="0 0 12 12" aria-hidden="true">
                    <path d="M3 4.5 6 7.5 9 4.5" />
                  </svg>
                </button>
              </h3>
              {is_open && (
                <div class="question-body">
                  <QuestionFields
                    question={question}
                    errors={errors}
                    onChange={(changed) => onChange(questions.with(at, changed))}
                  />
                  <div class="row">
                    <Button
                      size="small"
                      is_disabled={at === 0}
                      label={`Move ${question.id} up`}
                      onClick={() => onChange(moved(questions, at, -1))}
                    >
                      Up
                    </Button>
                    <Button
                      size="small"
                      is_disabled={at === questions.length - 1}
                      label={`Move ${question.id} down`}
                      onClick={() => onChange(moved(questions, at, 1))}
                    >
                      Down
                    </Button>
                    <Button
                      size="small"
                      label={`Duplicate ${question.id}`}
                      onClick={() => add(duplicateOf(question, ids), at + 1)}
                    >
                      Duplicate
                    </Button>
                    <Button
                      size="small"
                      label={`Remove ${question.id}`}
                      onClick={() => onChange(questions.toSpliced(at, 1))}
                    >
                      Remove
                    </Button>
                  </div>
                </div>
              )}
            </li>
          );
        })}
      </ol>
      {own_error !== undefined && (
        <p class="field-error" role="alert">
          {own_error}
        </p>
      )}
      <div class="row">
        <span class="muted">Add</span>
        {QUESTION_TYPES.map((type) => (
          <Button
            key={type}
            size="small"
            label={`Add a question: ${TYPE_NAMES[type].toLowerCase()}`}
            onClick={() => add(newQuestion(type, ids), questions.length)}
          >
            {TYPE_NAMES[type]}
          </Button>
        ))}
      </div>
    </section>
  );
}

function isFieldOf({ key, options }: DraftQuestion, name: string): boolean {
  return (
    [`id-${key}`, `type-${key}`, `criteria-${key}`, `instructions-${key}`].includes(name) ||
    options.some((option) => name === `option-${option.key}`)
  );
}
