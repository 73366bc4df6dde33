import { TextArea } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { LeftOutNotice } from './left-out.tsx';
import { QuestionsEditor } from './questions.tsx';
import { RecordEditor } from './record.tsx';
import type { WrittenRequest } from './use-request.ts';
import type { RequestPrice } from './use-token-count.ts';

/** The record and the questions, as a form or in JSON. */
export function RequestEditor({
  request: { draft, json, why_no_form, setDraft, takeJson },
  errors,
  price,
}: {
  readonly request: WrittenRequest;
  /** By the names of fields. */
  readonly errors: ReadonlyMap<string, string>;
  readonly price: RequestPrice | undefined;
}) {
  if (json === null) {
    return (
      <>
        <RecordEditor
          record={draft.record}
          error={errors.get('state')}
          onChange={(record) => setDraft({ ...draft, record })}
        />
        <LeftOutNotice text={draft.record.text} price={price} />
        <QuestionsEditor
          questions={draft.questions}
          errors={errors}
          onChange={(questions) => setDraft({ ...draft, questions })}
        />
      </>
    );
  }
  return (
    <section class="panel padded playground-part" aria-label="Request">
      <h2>Request</h2>
      {why_no_form !== undefined && (
        <Notice tone="warning" title="The form cannot show this request.">
          {why_no_form}
        </Notice>
      )}
      <TextArea
        label="Request in JSON"
        hides_label
        name="request"
        is_code
        rows={24}
        value={json}
        error={errors.get('request')}
        onInput={takeJson}
      />
      <LeftOutNotice text={json} price={price} />
    </section>
  );
}
