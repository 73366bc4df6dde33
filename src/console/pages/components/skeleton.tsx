/** The placeholder of content that is still loading. */
export function Skeleton({
  lines = 3,
  label = 'Loading',
}: {
  readonly lines?: number;
  readonly label?: string;
}) {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">{label}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton-line" />
      ))}
    </div>
  );
}
