import { useId } from 'preact/hooks';

/** A button that takes one file of the reader's device. */
export function FileButton({
  label,
  accept,
  is_disabled = false,
  onFile,
}: {
  readonly label: string;
  /** The types and ends of names that the browser's dialog offers. */
  readonly accept: string;
  readonly is_disabled?: boolean;
  readonly onFile: (file: File) => unknown;
}) {
  const id = useId();
  return (
    <span class="file-button">
      <input
        id={id}
        type="file"
        class="visually-hidden"
        accept={accept}
        disabled={is_disabled}
        onChange={(event) => {
          const input = event.currentTarget;
          const file = input.files?.[0];
          // The same file can be chosen again.
          input.value = '';
          if (file !== undefined) onFile(file);
        }}
      />
      <label for={id} class="button secondary small">
        {label}
      </label>
    </span>
  );
}
