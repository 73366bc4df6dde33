import { type ComponentChildren, Fragment } from 'preact';
import { formatMoney, formatMoneyShort } from '../format.ts';

interface TileProps {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  /** The exact value, where the shown one is rounded. */
  readonly hint?: string;
  readonly note?: ComponentChildren;
  /** Several short notes, each of which stays on one line. */
  readonly notes?: readonly ComponentChildren[];
}

/** One figure of a `<dl class="tiles">`: its title, its value, and notes. */
export function Tile({ title, value, hint, note, notes = note === undefined ? [] : [note] }: TileProps) {
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

/** A figure of money, rounded. */
export function MoneyTile({
  micros,
  ...tile
}: Omit<TileProps, 'value' | 'hint'> & { readonly micros: number }) {
  return <Tile {...tile} value={formatMoneyShort(micros)} hint={formatMoney(micros)} />;
}
