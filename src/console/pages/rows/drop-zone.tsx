import { useState } from 'preact/hooks';
import { FileButton } from '../components/file-button.tsx';
import { Notice } from '../components/notice.tsx';
import { FILE_ENDS, type RowFile, readRowFile } from './row-file.ts';

/** A place for a file, which is read in the browser and sent nowhere. */
export function DropZone({ onRead }: { readonly onRead: (file: RowFile) => unknown }) {
  const [is_over, setOver] = useState(false);
  const [reading, setReading] = useState<string>();
  const [complaint, setComplaint] = useState<string>();
  const read = async (file: File) => {
    setComplaint(undefined);
    setReading(file.name);
    // A large file is read in one go: the page must say so before.
    await new Promise((resolve) => setTimeout(resolve));
    const rows = await readRowFile(file);
    setReading(undefined);
    if (typeof rows === 'string') setComplaint(rows);
    else onRead(rows);
  };
  return (
    <>
      {complaint !== undefined && <Notice tone="danger" title={complaint} />}
      <section
        class={is_over ? 'drop-zone is-over' : 'drop-zone'}
        aria-label="File"
        aria-busy={reading !== undefined}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          const file = event.dataTransfer?.files[0];
          if (file !== undefined) void read(file);
        }}
      >
        <p class="empty-title">
          {reading === undefined ? 'Drop a CSV or JSONL file here' : `Reading ${reading}`}
        </p>
        <p class="muted">
          A row for each record, at most 100,000. The file stays in this browser. Its rows are sent to be
          answered, and the service does not save them.
        </p>
        <FileButton
          label="Choose file"
          accept={FILE_ENDS}
          is_disabled={reading !== undefined}
          onFile={(file) => void read(file)}
        />
      </section>
    </>
  );
}
