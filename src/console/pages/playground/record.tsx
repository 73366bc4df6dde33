import { useState } from 'preact/hooks';
import { TextArea } from '../components/field.tsx';
import { FileButton } from '../components/file-button.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { formatBytes } from '../format.ts';
import { type DraftRecord, jsonRecordOf } from './draft.ts';
import { keeps_work } from './kept-work.ts';

/** The largest body that the service reads (contract: a body has at most 1 MB). */
export const BODY_BYTES_MAX = 1_048_576;

const KINDS = [
  { value: 'text', label: 'Text' },
  { value: 'json', label: 'JSON' },
] as const;

/** The record: written, pasted, or read from a file, which leaves the page only in a request. */
export function RecordEditor({
  record,
  error,
  onChange,
}: {
  readonly record: DraftRecord;
  readonly error: string | undefined;
  readonly onChange: (record: DraftRecord) => void;
}) {
  const [file_error, setFileError] = useState<string>();
  const bytes = new Blob([record.text]).size;
  const change = (changed: DraftRecord) => {
    setFileError(undefined);
    onChange(changed);
  };
  return (
    <section class="panel padded playground-part" aria-label="Record">
      <header class="playground-part-head">
        <h2>Record</h2>
        <div class="row">
          <SegmentedControl
            label="Kind of record"
            options={KINDS}
            value={record.kind}
            onChange={(kind) => change({ ...record, kind })}
          />
          <FileButton
            label="Load file"
            accept="text/*,.json,.txt,.md,.csv,.eml,.html,.xml,.log"
            onFile={async (file) => {
              const read = await recordOf(file);
              if (typeof read === 'string') setFileError(read);
              else change(read);
            }}
          />
        </div>
      </header>
      <TextArea
        label="Record"
        hides_label
        name="state"
        value={record.text}
        rows={5}
        is_code={record.kind === 'json'}
        placeholder={
          record.kind === 'json'
            ? '{ "subject": "…", "body": "…" }'
            : 'A message, a ticket, an article: whatever the questions are about, in English.'
        }
        error={error ?? file_error}
        onInput={(text) => change({ ...record, text })}
        help={
          bytes > BODY_BYTES_MAX
            ? `${formatBytes(bytes)}: a request may have 1 MB.`
            : `${formatBytes(bytes)}. ${keeps_work.value ? 'It stays in this browser' : 'It stays on this page'}: the service does not save it.`
        }
      />
    </section>
  );
}

/** Returns the record of a file, or the reason why there is none. */
async function recordOf(file: File): Promise<DraftRecord | string> {
  if (file.size > BODY_BYTES_MAX) {
    return `${file.name} has ${formatBytes(file.size)}: a request may have 1 MB.`;
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    return { kind: jsonRecordOf(text) === null ? 'text' : 'json', text };
  } catch {
    return `${file.name} is not a text in UTF-8.`;
  }
}
