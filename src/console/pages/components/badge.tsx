import type { ComponentChildren } from 'preact';
import type { Tone } from './notice.tsx';

/** A state in one word. */
export function Badge({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
