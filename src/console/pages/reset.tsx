import { useState } from 'preact/hooks';
import { api, call } from './client.ts';
import { Button } from './components/button.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { NewPasswordField } from './components/new-password.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { showToast } from './components/toast.tsx';
import { useLinkToken } from './link-token.ts';
import { navigate } from './router.ts';
import { loadSession, session } from './session.ts';

/** A form that asks for the mail that resets a password; with its token, a form for the new password. */
export default function Reset() {
  const [token, forget] = useLinkToken();
  return token === null ? <RequestReset /> : <NewPassword token={token} onAskAgain={forget} />;
}

function RequestReset() {
  const [sent_to, setSentTo] = useState<string>();
  return (
    <>
      <PageHeader
        title="Reset your password"
        description="You get a link by mail. If you have one, open it again."
      />
      {sent_to === undefined ? (
        <Form
          submit="Send the link"
          fields={['email']}
          onSubmit={async (values) => {
            const email = values.text('email');
            await call(api['reset-request'].post({ email }));
            setSentTo(email);
          }}
        >
          <TextField label="Email address" name="email" type="email" autocomplete="username" is_required />
        </Form>
      ) : (
        <Notice tone="success" title="Check your mailbox">
          If {sent_to} has an account here, a link to choose a new password is on its way.
        </Notice>
      )}
      <p class="form-links">
        <a href="/console/sign-in">Back to sign-in</a>
      </p>
    </>
  );
}

function NewPassword({ token, onAskAgain }: { readonly token: string; readonly onAskAgain: () => void }) {
  return (
    <>
      <PageHeader title="Choose a new password" description="You are signed out everywhere else." />
      <Form
        submit="Set password"
        fields={['password']}
        onSubmit={async (values) => {
          await call(api.reset.post({ token, new_password: values.exact('password') }));
          // The reset has ended the sessions of before.
          await loadSession();
          const next =
            session.value.state === 'signed_in' ? 'Sign out to sign in with it.' : 'Sign in with it.';
          showToast(`The password is changed. ${next}`);
          navigate('/console/sign-in', { replace: true });
        }}
      >
        <NewPasswordField label="New password" />
      </Form>
      <p class="form-links">
        <Button kind="quiet" onClick={onAskAgain}>
          Ask for a new link
        </Button>
      </p>
    </>
  );
}
