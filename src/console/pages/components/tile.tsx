import type { ComponentChildren } from 'preact';

/** One figure of a `<dl class="tiles">`: its title, its value, and a note. */
export function Tile({
  title,
  value,
  hint,
  note,
}: {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  /** The exact value, where the shown one is rounded. */
  readonly hint?: string;
  readonly note?: ComponentChildren;
}) {
  return (
    <div class="panel tile">
      <dt>{title}</dt>
      <dd title={hint}>{value}</dd>
      {note !== undefined && note !== '' && <dd class="tile-note">{note}</dd>}
    </div>
  );
}
