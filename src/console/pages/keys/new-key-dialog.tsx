import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { CopyText } from '../components/copy-button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Notice } from '../components/notice.tsx';

/** A new key with its secret. */
export interface CreatedKey {
  readonly name: string;
  readonly key: string;
}

/** A dialog with a form that makes a key. It then shows the key, once, because the service stores only its hash. */
export function NewKeyDialog({
  title,
  title_of_key,
  is_open,
  onClose,
  children,
}: {
  readonly title: string;
  readonly title_of_key: string;
  readonly is_open: boolean;
  readonly onClose: () => void;
  readonly children: (onCreate: (created: CreatedKey) => void, close: () => void) => ComponentChildren;
}) {
  const [created, setCreated] = useState<CreatedKey>();
  const [is_copied, setCopied] = useState(false);
  const close = () => {
    setCreated(undefined);
    setCopied(false);
    onClose();
  };
  return (
    <Dialog
      title={created === undefined ? title : title_of_key}
      is_open={is_open}
      is_kept={created !== undefined && !is_copied}
      onClose={close}
    >
      {created === undefined ? (
        children(setCreated, close)
      ) : (
        <>
          <Notice tone="warning" title="You will not see it again.">
            Keep it on your server, never in a page or an app. If it is lost, revoke <bdi>{created.name}</bdi>{' '}
            and create another.
          </Notice>
          <CopyText text={created.key} label="Copy" onCopied={() => setCopied(true)} />
          <div class="form-actions">
            <Button kind="primary" onClick={close}>
              {is_copied ? 'Done' : 'I have stored it'}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  );
}
