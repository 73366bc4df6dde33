import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Checkbox } from '../components/field.tsx';
import { KEPT_RUNS_MAX, keeps_work, keepWork } from './kept-work.ts';

/** The one switch of what the playground keeps. Off, it is deleted from this browser. */
export function KeepSwitch() {
  const [is_asking, setAsking] = useState(false);
  return (
    <>
      <Checkbox
        name="keeps_work"
        label="Keep my work in this browser"
        is_checked={keeps_work.value}
        onChange={(is_on) => {
          if (is_on) void keepWork(true);
          else setAsking(true);
        }}
      />
      <ConfirmDialog
        title="Delete what this browser keeps?"
        action="Delete and stop"
        is_open={is_asking}
        onClose={() => setAsking(false)}
        onConfirm={() => keepWork(false)}
      >
        <p>
          Drafts, saved requests, the last {KEPT_RUNS_MAX} runs and the batch of every organization are
          deleted from this browser, and nothing is kept from now on. The service never had them.
        </p>
      </ConfirmDialog>
    </>
  );
}
