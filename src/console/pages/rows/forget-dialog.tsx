import { ConfirmDialog } from '../components/dialog.tsx';

/** Asks before answers are deleted, with their file or without. */
export function ForgetDialog({
  forgets,
  onClose,
  onForgetFile,
  onForgetAnswers,
}: {
  /** Undefined while nothing is asked. */
  readonly forgets: 'file' | 'answers' | undefined;
  readonly onClose: () => void;
  readonly onForgetFile: () => Promise<void>;
  readonly onForgetAnswers: () => void;
}) {
  return (
    <ConfirmDialog
      title={forgets === 'file' ? 'Take another file?' : 'Start over?'}
      action="Delete the answers"
      is_open={forgets !== undefined}
      onClose={onClose}
      onConfirm={async () => (forgets === 'file' ? await onForgetFile() : onForgetAnswers())}
    >
      <p>The answers are deleted from this browser. Rows that are asked again are charged again.</p>
    </ConfirmDialog>
  );
}
