import { api, call } from './client.ts';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { PageHeader } from './components/page-header.tsx';
import { showToast } from './components/toast.tsx';
import { invitationPath, keptInvitation } from './invitation-link.ts';
import { navigate, query } from './router.ts';
import { loadSession } from './session.ts';

/** Verifies an address by the token of the e-mail and the password; without a token, sends a link. */
export default function Verify() {
  const token = query.value.get('token');
  return token === null ? <RequestLink /> : <VerifyAddress token={token} />;
}

function VerifyAddress({ token }: { readonly token: string }) {
  return (
    <>
      <PageHeader
        title="Verify your address"
        description="Enter the password that you chose when you signed up."
      />
      <Form
        submit="Verify and sign in"
        fields={['password']}
        onSubmit={async (values) => {
          await call(api.verify.post({ token, password: values.exact('password') }));
          await loadSession();
          showToast('Your address is verified.');
          const invitation_token = keptInvitation();
          navigate(invitation_token === null ? '/console' : invitationPath(invitation_token), {
            replace: true,
          });
        }}
      >
        <TextField
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          is_required
        />
      </Form>
      <p>
        Was it not you who signed up, or is the password forgotten? Set a new one by a mailed link: it
        verifies your address too, and ends the old one.
      </p>
      <p class="form-links">
        <a href="/console/reset">Set a new password</a>
        <a href="/console/verify">Send a new link</a>
      </p>
    </>
  );
}

function RequestLink() {
  return (
    <>
      <PageHeader title="Verify your address" description="By a link that is sent to it." />
      <Form
        submit="Send a new link"
        fields={['email']}
        onSubmit={async (values) => {
          await call(api.verification.post({ email: values.text('email') }));
          showToast('If there is such an account, a link is on its way.');
        }}
      >
        <TextField label="E-mail" name="email" type="email" autocomplete="username" is_required />
      </Form>
    </>
  );
}
