import { useState } from 'preact/hooks';
import { api, call } from './client.ts';
import { Button } from './components/button.tsx';
import { NameField, TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { NewPasswordField } from './components/new-password.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { Skeleton } from './components/skeleton.tsx';
import { attempt, showToast } from './components/toast.tsx';
import { session } from './session.ts';
import { useLeadOn } from './use-lead-on.ts';

/** The form that creates an account; the link in the mail that follows verifies the address. */
export default function SignUp() {
  const is_led_on = useLeadOn();
  const [sent_to, setSentTo] = useState<string>();
  const is_closed = session.value.state === 'signed_out' && session.value.sign_up === 'invited';

  if (is_led_on) return <Skeleton />;
  if (sent_to !== undefined) {
    return (
      <>
        <PageHeader title="Check your mailbox" />
        <Notice tone="success" title={`A link was sent to ${sent_to}.`}>
          Open it to verify your email address. It may take a minute to arrive.
        </Notice>
        <p class="form-links">
          <Button
            kind="quiet"
            onClick={() =>
              attempt(async () => {
                await call(api.verification.post({ email: sent_to }));
                showToast('The link was sent again.');
              })
            }
          >
            Send it again
          </Button>
          <a href="/console/sign-in">Sign in</a>
        </p>
      </>
    );
  }
  if (is_closed) {
    return (
      <>
        <PageHeader title="Accounts are by invitation" />
        <Notice title="This service opens accounts by invitation only.">
          Ask a member of your organization for an invitation, and follow the link in it.
        </Notice>
        <p class="form-links">
          <a href="/console/sign-in">Sign in</a>
        </p>
      </>
    );
  }
  return (
    <>
      <PageHeader title="Create an account" />
      <Form
        submit="Create account"
        fields={['name', 'email', 'password']}
        onSubmit={async (values) => {
          const email = values.text('email');
          const account = { name: values.text('name'), email, password: values.exact('password') };
          await call(api['sign-up'].post(account));
          setSentTo(email);
        }}
      >
        <NameField autocomplete="name" />
        <TextField label="Email address" name="email" type="email" autocomplete="username" is_required />
        <NewPasswordField />
      </Form>
      <p class="form-links">
        <a href="/console/sign-in">Sign in instead</a>
      </p>
    </>
  );
}
