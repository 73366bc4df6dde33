import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../components/dialog.tsx';

/** A request that is to take the place of one that somebody wrote. */
interface Replacement {
  readonly title: string;
  readonly load: () => void;
}

/** Loads a request at once, or after a question where what is on the page would be lost. */
export function useReplacement(is_dirty: boolean) {
  const [replacement, setReplacement] = useState<Replacement>();
  return {
    replacement,
    replace: (title: string, load: () => void) => {
      if (is_dirty) setReplacement({ title, load });
      else load();
    },
    onClose: () => setReplacement(undefined),
  };
}

/** Asks before what somebody wrote is replaced. */
export function ReplaceDialog({
  replacement,
  onClose,
}: {
  readonly replacement: Replacement | undefined;
  readonly onClose: () => void;
}) {
  return (
    <ConfirmDialog
      title={replacement?.title ?? ''}
      action="Replace"
      is_dangerous={false}
      is_open={replacement !== undefined}
      onClose={onClose}
      onConfirm={() => {
        replacement?.load();
        return Promise.resolve();
      }}
    >
      <p>It replaces the record and the questions that are on the page.</p>
    </ConfirmDialog>
  );
}
