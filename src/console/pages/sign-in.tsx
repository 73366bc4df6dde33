import { useEffect, useState } from 'preact/hooks';
import { CodeField } from './account/code-field.tsx';
import { answerPasskeyQuestion, canUsePasskeys } from './account/passkey-ceremony.ts';
import { api, asApiError, call } from './client.ts';
import { Button } from './components/button.tsx';
import { CurrentPasswordField } from './components/current-password.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { Skeleton } from './components/skeleton.tsx';
import { attempt, showToast } from './components/toast.tsx';
import { focusContent } from './focus-content.ts';
import { loadSession, session, useSignInElsewhere } from './session.ts';
import { useLeadOn } from './use-lead-on.ts';

/** Sign-in with email address and password, or with a passkey, followed by the requested page. */
export default function SignIn() {
  const is_led_on = useLeadOn();
  useSignInElsewhere();
  const [is_waiting, setWaiting] = useState(false);
  const [unverified_email, setUnverifiedEmail] = useState<string>();
  const is_open = session.value.state === 'signed_out' && session.value.sign_up === 'open';
  const has_ended = session.value.state === 'signed_out' && session.value.has_ended;
  const offers_passkeys = session.value.state === 'signed_out' && session.value.offers_passkeys;
  if (is_led_on) return <Skeleton />;
  if (is_waiting) return <SecondStep onDone={loadSession} onStartAgain={() => setWaiting(false)} />;
  return (
    <>
      <PageHeader
        title="Sign in"
        description="Ask typed questions about your records, and get a probability for every answer."
      />
      {has_ended && (
        <Notice title="Your session has ended">
          It was not used for 14 days, this browser deleted its cookies, or it was ended: by a new password,
          or from another browser. Sign in to go on where you were.
        </Notice>
      )}
      <Form
        submit="Sign in"
        fields={['email', 'password']}
        onSubmit={async (values) => {
          const email = values.text('email');
          setUnverifiedEmail(undefined);
          try {
            const step = await call(api['sign-in'].post({ email, password: values.exact('password') }));
            if ('needs_second_factor' in step) setWaiting(true);
            else await loadSession();
          } catch (error) {
            if (asApiError(error).code === 'email_not_verified') setUnverifiedEmail(email);
            throw error;
          }
        }}
      >
        <TextField label="Email address" name="email" type="email" autocomplete="username" is_required />
        <CurrentPasswordField />
      </Form>
      {unverified_email !== undefined && <SendLinkAgain email={unverified_email} />}
      {offers_passkeys && canUsePasskeys() && <PasskeyButton onDone={loadSession} />}
      <p class="form-links">
        <a href="/console/reset">Forgot your password?</a>
        {is_open && <a href="/console/sign-up">Create an account</a>}
      </p>
    </>
  );
}

/** Sign-in without a name: the browser shows the passkeys that it has for this service. */
function PasskeyButton({ onDone }: { readonly onDone: () => Promise<void> }) {
  const [is_busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const enter = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const question = await call(api.passkey.question.post());
      const answer = await answerPasskeyQuestion(question);
      await call(api.passkey.post(answer));
      await onDone();
    } catch (thrown) {
      setError(asApiError(thrown).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {error !== undefined && <Notice tone="danger" title={error} />}
      <p class="form-links">
        <Button onClick={enter} is_busy={is_busy}>
          Sign in with a passkey
        </Button>
      </p>
    </>
  );
}

/** The code of the app, or a recovery code, after the right password. */
function SecondStep({
  onDone,
  onStartAgain,
}: {
  readonly onDone: () => Promise<void>;
  readonly onStartAgain: () => void;
}) {
  // The pressed button is gone with the first step.
  useEffect(focusContent, []);
  return (
    <>
      <PageHeader title="Enter your code" description="From the authenticator app on your phone." />
      <Form
        submit="Sign in"
        fields={['code']}
        onSubmit={async (values) => {
          await call(api['second-factor'].post({ code: values.text('code') }));
          await onDone();
        }}
      >
        <CodeField help="Without your phone, enter one of your recovery codes." />
      </Form>
      <p class="form-links">
        <Button kind="quiet" onClick={onStartAgain}>
          Start again
        </Button>
      </p>
    </>
  );
}

function SendLinkAgain({ email }: { readonly email: string }) {
  return (
    <p class="form-links">
      <Button
        onClick={() =>
          attempt(async () => {
            await call(api.verification.post({ email }));
            showToast(`A new link is on its way to ${email}.`);
          })
        }
      >
        Send the link again
      </Button>
    </p>
  );
}
