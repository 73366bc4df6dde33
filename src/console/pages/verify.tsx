import { api, call } from './client.ts';
import { Button } from './components/button.tsx';
import { CurrentPasswordField } from './components/current-password.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { PageHeader } from './components/page-header.tsx';
import { showToast } from './components/toast.tsx';
import { useLinkToken } from './link-token.ts';
import { navigate } from './router.ts';
import { loadSession } from './session.ts';

/**
 * A form that verifies an address by the token of the mail and the password; without a token, one that
 * sends a link.
 */
export default function Verify() {
  const [token, forget] = useLinkToken();
  return token === null ? <RequestLink /> : <VerifyAddress token={token} onAskAgain={forget} />;
}

function VerifyAddress({ token, onAskAgain }: { readonly token: string; readonly onAskAgain: () => void }) {
  return (
    <>
      <PageHeader
        title="Verify your email address"
        description="Enter the password that you chose when you signed up."
      />
      <Form
        submit="Verify and sign in"
        fields={['password']}
        onSubmit={async (values) => {
          await call(api.verify.post({ token, password: values.exact('password') }));
          await loadSession();
          showToast('Your email address is verified.');
          navigate('/console', { replace: true });
        }}
      >
        <CurrentPasswordField />
      </Form>
      <p>
        Did you not sign up, or have you forgotten the password? Get a link by mail and set a new one, which
        also verifies your email address.
      </p>
      <p class="form-links">
        <a href="/console/sign-in">Sign in</a>
        <a href="/console/reset">Set a new password</a>
        <Button kind="quiet" onClick={onAskAgain}>
          Send a new link
        </Button>
      </p>
    </>
  );
}

function RequestLink() {
  return (
    <>
      <PageHeader
        title="Verify your email address"
        description="You get a link by mail. If you have one, open it again."
      />
      <Form
        submit="Send a new link"
        fields={['email']}
        onSubmit={async (values) => {
          await call(api.verification.post({ email: values.text('email') }));
          showToast(
            'If there is an account that is not verified, a link is on its way. If it is verified, sign in.',
          );
        }}
      >
        <TextField label="Email address" name="email" type="email" autocomplete="username" is_required />
      </Form>
      <p class="form-links">
        <a href="/console/sign-in">Sign in</a>
      </p>
    </>
  );
}
