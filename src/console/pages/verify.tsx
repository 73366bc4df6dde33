import { api, call } from './client.ts';
import { ButtonLink } from './components/button.tsx';
import { TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { Skeleton } from './components/skeleton.tsx';
import { showToast } from './components/toast.tsx';
import { invitationPath, keptInvitation } from './invitation-link.ts';
import { query } from './router.ts';
import { loadSession, session } from './session.ts';
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
    const invitation_token = keptInvitation();
    const next = invitation_token === null ? '/console' : invitationPath(invitation_token);
    return (
      <>
        <PageHeader title="Your address is verified" />
        <ButtonLink
          kind="primary"
          href={
            session.value.state === 'signed_in'
              ? next
              : `/console/sign-in?${new URLSearchParams({ return: next })}`
          }
        >
          {invitation_token === null ? 'Go to the console' : 'Go on to the invitation'}
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
