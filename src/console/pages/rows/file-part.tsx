import type { ComponentChildren } from 'preact';
import { Button } from '../components/button.tsx';
import { formatCount } from '../format.ts';
import { keeps_work } from '../playground/kept-work.ts';
import type { RowFile } from './row-file.ts';

/** The file whose rows are asked, and the choice of its columns. */
export function FilePart({
  file,
  is_running,
  onRemove,
  children,
}: {
  readonly file: RowFile;
  readonly is_running: boolean;
  readonly onRemove: () => void;
  readonly children?: ComponentChildren;
}) {
  return (
    <section class="panel padded playground-part" aria-label="File">
      <header class="playground-part-head">
        <h2 class="batch-file">{file.name}</h2>
        <Button size="small" is_disabled={is_running} onClick={onRemove}>
          Another file
        </Button>
      </header>
      <p class="help">
        {formatCount(file.rows.length, 'row')}, {formatCount(file.columns.length, 'column')}.{' '}
        {keeps_work.value ? 'They stay in this browser' : 'They stay on this page'}: the service does not save
        them.
      </p>
      {children}
    </section>
  );
}
