import { useEffect, useState } from 'preact/hooks';
import { api, call, callForSecret } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { CopyButton } from '../components/copy-button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Form } from '../components/form.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { showToast } from '../components/toast.tsx';
import { loadSession } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { CodeField } from './code-field.tsx';
import { PasswordDialog } from './password-dialog.tsx';
import { QrCode } from './qr-code.tsx';

const TITLE = 'Two-step sign-in';
/** Fewer recovery codes than these are a warning. */
const FEW_CODES = 4;

type Opened = 'add' | 'codes' | 'remove';

/** The second factor of the reader: an app that shows codes, and recovery codes for the day when it is lost. */
export function TwoStepSignIn() {
  const status = useLoaded(() => call(api.account['second-factor'].get()), []);
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  const reload = async () => {
    // The session was replaced, and with it the token of every change.
    await loadSession();
    await status.reload();
  };
  return (
    <Section title={TITLE} description="Sign in with your password and a code from your phone.">
      <LoadedView loaded={status} lines={1}>
        {({ is_on, recovery_codes_left }) =>
          is_on ? (
            <div class="panel padded stack">
              <p>
                <Badge tone="success">On</Badge> {codesLeft(recovery_codes_left)}
              </p>
              {recovery_codes_left < FEW_CODES && (
                <Notice tone="warning" title="Make new recovery codes before the last one is used." />
              )}
              <div class="row-actions">
                <Button onClick={() => setOpened('codes')}>New recovery codes…</Button>
                <Button onClick={() => setOpened('remove')}>Turn off…</Button>
              </div>
            </div>
          ) : (
            <div>
              <Button onClick={() => setOpened('add')}>Set up two-step sign-in…</Button>
            </div>
          )
        }
      </LoadedView>
      {opened === 'add' && <AddDialog onDone={reload} onClose={close} />}
      {opened === 'codes' && <RenewDialog onDone={reload} onClose={close} />}
      {opened === 'remove' && <RemoveDialog onDone={reload} onClose={close} />}
    </Section>
  );
}

function codesLeft(number: number): string {
  return number === 1 ? '1 recovery code is left.' : `${number} recovery codes are left.`;
}

interface DialogParts {
  /** Reads the session and the second factor again. Recovery codes are shown before: a failure would replace the page. */
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

type Step =
  | { readonly step: 'password' }
  | { readonly step: 'code'; readonly app_url: string; readonly codes: readonly string[] }
  | { readonly step: 'codes'; readonly codes: readonly string[] };

function AddDialog({ onDone, onClose }: DialogParts) {
  const [at, setAt] = useState<Step>({ step: 'password' });
  if (at.step === 'codes') return <RecoveryCodes codes={at.codes} onDone={onDone} onClose={onClose} />;
  if (at.step === 'code') {
    const { app_url, codes } = at;
    return (
      <Dialog title="Scan this code with your app" is_open onClose={onClose}>
        <Form
          submit="Turn on"
          fields={['code']}
          onCancel={onClose}
          onSubmit={async (values) => {
            await callForSecret(api.account['second-factor'].confirm.post({ code: values.text('code') }));
            setAt({ step: 'codes', codes });
          }}
        >
          <p>Any authenticator app will do. Then enter the six digits that it shows.</p>
          <QrCode text={app_url} label="The QR code for your app" />
          <p class="help">
            No camera? Enter this key in the app: <code class="breakable">{secretOf(app_url)}</code>
          </p>
          <CodeField />
        </Form>
      </Dialog>
    );
  }
  return (
    <PasswordDialog
      title="Set up two-step sign-in"
      submit="Continue"
      onClose={onClose}
      onPassword={async (password) => {
        const begun = await call(api.account['second-factor'].post({ password }));
        setAt({ step: 'code', app_url: begun.app_url, codes: begun.recovery_codes });
      }}
    >
      <p>You need an authenticator app on your phone. Enter your password to go on.</p>
    </PasswordDialog>
  );
}

function RenewDialog({ onDone, onClose }: DialogParts) {
  const [codes, setCodes] = useState<readonly string[]>();
  if (codes !== undefined) return <RecoveryCodes codes={codes} onDone={onDone} onClose={onClose} />;
  return (
    <PasswordDialog
      title="Make new recovery codes"
      submit="Make new codes"
      onClose={onClose}
      onPassword={async (password) => {
        const made = await callForSecret(api.account['second-factor']['recovery-codes'].post({ password }));
        setCodes(made.recovery_codes);
      }}
    >
      <p>The old ones end. Enter your password to go on.</p>
    </PasswordDialog>
  );
}

function RemoveDialog({ onDone, onClose }: DialogParts) {
  return (
    <PasswordDialog
      title="Turn two-step sign-in off?"
      submit="Turn off"
      kind="danger"
      onDone={onClose}
      onClose={onClose}
      onPassword={async (password) => {
        await call(api.account['second-factor'].delete({ password }));
        await onDone();
        showToast('Two-step sign-in is off.');
      }}
    >
      <p>Your password alone signs you in from then on. Enter it to go on.</p>
    </PasswordDialog>
  );
}

/** The codes, which are shown once: the dialog stays until they are copied or confirmed. */
function RecoveryCodes({ codes, onDone, onClose }: DialogParts & { readonly codes: readonly string[] }) {
  // Also where the page is left in another way: the token of changes is that of the session before.
  useEffect(() => () => void onDone(), []);
  return (
    <Dialog title="Keep these recovery codes" is_open is_kept onClose={onClose}>
      <p>Each signs you in once in place of your app. They are not shown again.</p>
      <ul class="recovery-codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="form-actions">
        <CopyButton text={codes.join('\n')} label="Copy all" />
        <Button kind="primary" onClick={onClose}>
          I have kept them
        </Button>
      </div>
    </Dialog>
  );
}

function secretOf(app_url: string): string {
  return new URL(app_url).searchParams.get('secret') ?? '';
}
