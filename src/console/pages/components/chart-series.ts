/** `stacked` has bars whose series add up; the last one is at the bottom. */
export type ChartKind = 'lines' | 'bars' | 'stacked';

export type ChartColor = 1 | 2 | 3 | 4 | 5 | 'danger' | 'muted';

export interface ChartSeries {
  readonly label: string;
  /** One value for each time; null for none. */
  readonly values: readonly (number | null)[];
  /** A colour of the palette; by default that of the series' position. */
  readonly color?: ChartColor;
}

/** Returns the colour of a series in the style sheet. The palette begins again after its last colour. */
export function variableOf(color: number | 'danger' | 'muted'): string {
  if (color === 'danger') return 'var(--danger)';
  return color === 'muted' ? 'var(--line-strong)' : `var(--chart-${((color - 1) % 5) + 1})`;
}
