import { type ComponentChildren, Fragment } from 'preact';

/** One figure of a `<dl class="tiles">`: its title, its value, and notes. */
export function Tile({
  title,
  value,
  hint,
  note,
  notes = note === undefined ? [] : [note],
}: {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  /** The exact value, where the shown one is rounded. */
  readonly hint?: string;
  readonly note?: ComponentChildren;
  /** Several short notes, each of which stays on one line. */
  readonly notes?: readonly ComponentChildren[];
}) {
  return (
    <div class="panel tile">
      <dt>{title}</dt>
      <dd title={hint}>{value}</dd>
      {notes.length > 0 && (
        <dd class="tile-note">
          {notes.map((text) => (
            // A line is broken at the space.
            <Fragment key={String(text)}>
              <span>{text}</span>{' '}
            </Fragment>
          ))}
        </dd>
      )}
    </div>
  );
}
