import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { linkOf } from './request-link.ts';

/** Copies a link that opens this request in the playground of whoever may use it here. */
export function LinkButton({
  body,
  organization_id,
}: {
  readonly body: JsonObject<JsonValue> | null;
  readonly organization_id: string;
}) {
  if (body === null) return null;
  return (
    <CopyButton
      label="Copy link"
      failure="Too long for a link"
      text={async () => await linkOf(writeJson(body), organization_id)}
    />
  );
}
