import { useState } from 'preact/hooks';
import { api, asApiError, call } from './client.ts';
import { Button } from './components/button.tsx';
import { CurrentPasswordField } from './components/current-password.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { attempt, showToast } from './components/toast.tsx';
import { safeReturnPath } from './paths.ts';
import { navigate, query } from './router.ts';
import { loadSession, session } from './session.ts';

/** Sign-in with e-mail and password, followed by the requested page. */
export default function SignIn() {
  const wanted = query.value.get('return');
  const [unverified_email, setUnverifiedEmail] = useState<string>();
  const is_open = session.value.state === 'signed_out' && session.value.sign_up === 'open';
  const has_ended = session.value.state === 'signed_out' && session.value.has_ended;
  return (
    <>
      <PageHeader
        title="Sign in"
        description="Ask typed questions about your records, and get a probability for every answer."
      />
      {has_ended && (
        <Notice title="Your session has ended">
          It was not used for 14 days, or it was ended: by a new password, or from another browser. Sign in to
          go on where you were.
        </Notice>
      )}
      <Form
        submit="Sign in"
        fields={['email', 'password']}
        onSubmit={async (values) => {
          const email = values.text('email');
          setUnverifiedEmail(undefined);
          try {
            await call(api['sign-in'].post({ email, password: values.exact('password') }));
          } catch (error) {
            if (asApiError(error).code === 'email_not_verified') setUnverifiedEmail(email);
            throw error;
          }
          await loadSession();
          navigate(safeReturnPath(wanted, location.origin) + location.hash, { replace: true });
        }}
      >
        <TextField label="E-mail" name="email" type="email" autocomplete="username" is_required />
        <CurrentPasswordField />
      </Form>
      {unverified_email !== undefined && <SendLinkAgain email={unverified_email} />}
      <p class="form-links">
        <a href="/console/reset">Forgot your password?</a>
        {is_open && <a href="/console/sign-up">Create an account</a>}
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
