import { api, call } from './client.ts';
import { ButtonLink } from './components/button.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { Skeleton } from './components/skeleton.tsx';
import { showToast } from './components/toast.tsx';
import { query } from './router.ts';
import { loadSession } from './session.ts';
import { useLoaded } from './use-loaded.ts';

/** Verifies an address by the token of the e-mail; sends a new link where the old one is no longer good. */
export default function Verify() {
  const token = query.value.get('token');
  const verified = useLoaded(async () => {
    if (token === null) return null;
    await call(api.verify.post({ token }));
    await loadSession();
    return true;
  }, [token]);

  if (verified.is_loading) return <Skeleton lines={2} label="Verifying your address" />;
  if (verified.data === true) {
    return (
      <>
        <PageHeader title="Your address is verified" />
        <ButtonLink kind="primary" href="/console">
          Go to the console
        </ButtonLink>
      </>
    );
  }
  return (
    <>
      <PageHeader title="Verify your address" />
      {verified.error !== undefined && (
        <Notice tone="danger" title={verified.error.message} request_id={verified.error.request_id} />
      )}
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
