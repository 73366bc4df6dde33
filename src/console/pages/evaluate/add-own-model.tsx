import { useState } from 'preact/hooks';
import { writeJson } from '../../../json/write-json.ts';
import { questionBody } from '../../../questions/question.ts';
import { api, call } from '../client.ts';
import { ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { Notice } from '../components/notice.tsx';
import { organizationPath } from '../paths.ts';
import { linkOf } from '../playground/request-link.ts';
import type { EvaluatedQuestion } from './evaluated.ts';
import type { EvaluationSetup } from './setup.ts';

/** The most characters of a suggested name. */
const SUGGESTION_LENGTH = 50;

interface AddOwnModelProps {
  readonly organization_id: string;
  /** The text of the tuning file. */
  readonly tuning: string;
  /** The name of the file with the right answers. */
  readonly file_name: string;
  readonly chosen: EvaluationSetup;
  /** A corrected question, which the playground opens with. */
  readonly example: EvaluatedQuestion | undefined;
}

/** Asks for a name, and puts the corrections into the catalog as a model of the organization. */
export function AddOwnModel({ organization_id, tuning, file_name, chosen, example }: AddOwnModelProps) {
  const [added, setAdded] = useState<{ readonly id: string; readonly playground: string }>();
  if (added !== undefined) {
    return (
      <Notice
        tone="success"
        title={`${added.id} is added.`}
        actions={
          <>
            <ButtonLink href={added.playground}>Ask it in the playground</ButtonLink>
            <ButtonLink href={organizationPath(organization_id, 'models')}>Models</ButtonLink>
          </>
        }
      >
        Requests name it as their model. Questions that were not tuned get the answers of {chosen.model}.
      </Notice>
    );
  }
  return (
    <Form
      submit="Add to models"
      fields={['name']}
      onSubmit={async (values) => {
        const { id } = await call(
          api.organizations({ organization_id })['own-models'].post(tuning, {
            query: { name: values.text('name') },
            headers: { 'content-type': 'application/x-ndjson' },
          }),
        );
        const link =
          example === undefined ? null : await linkOf(requestOf(id, chosen, example), organization_id);
        setAdded({ id, playground: link ?? organizationPath(organization_id, 'playground') });
      }}
    >
      <TextField
        label="Name of the model"
        name="name"
        value={suggestedName(file_name)}
        help={`Its id begins with that of the organization: ${organization_id}:… It costs what ${chosen.model} does.`}
        length_max={60}
        autocomplete="off"
        is_required
      />
    </Form>
  );
}

/** Returns the name of a file as that of a model, with a number that the next one counts up. */
function suggestedName(file_name: string): string {
  const words = file_name.replace(/\.\w+$/, '').match(/[A-Za-z0-9]+/g) ?? ['tuned'];
  return `${words.join('-').toLowerCase().slice(0, SUGGESTION_LENGTH)}-1`;
}

/** Returns a request of a question about the first record that it was asked about, in JSON. */
function requestOf(
  model: string,
  { mode }: EvaluationSetup,
  { name, question, judged }: EvaluatedQuestion,
): string {
  const [id, body] = [JSON.stringify(name), writeJson(questionBody(question))];
  const record = judged[0]?.record ?? '""';
  return `{"model":${JSON.stringify(model)},"mode":"${mode}","state":${record},"questions":{${id}:${body}}}`;
}
