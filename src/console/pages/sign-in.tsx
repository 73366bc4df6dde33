import { api, call } from './client.ts';
import { CurrentPasswordField } from './components/current-password.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { PageHeader } from './components/page-header.tsx';
import { safeReturnPath } from './paths.ts';
import { navigate, query } from './router.ts';
import { loadSession, session } from './session.ts';

/** Sign-in with e-mail and password, followed by the requested page. */
export default function SignIn() {
  const wanted = query.value.get('return');
  const is_open = session.value.state === 'signed_out' && session.value.sign_up === 'open';
  return (
    <>
      <PageHeader
        title="Sign in"
        description="Ask typed questions about your records, and get a probability for every answer."
      />
      <Form
        submit="Sign in"
        fields={['email', 'password']}
        onSubmit={async (values) => {
          await call(
            api['sign-in'].post({ email: values.text('email'), password: values.exact('password') }),
          );
          await loadSession();
          navigate(safeReturnPath(wanted, location.origin) + location.hash, { replace: true });
        }}
      >
        <TextField label="E-mail" name="email" type="email" autocomplete="username" is_required />
        <CurrentPasswordField />
      </Form>
      <p class="form-links">
        <a href="/console/reset">Forgot your password?</a>
        {is_open && <a href="/console/sign-up">Create an account</a>}
      </p>
    </>
  );
}
