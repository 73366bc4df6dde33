import { api, call } from './client.ts';
import { ButtonLink } from './components/button.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { LoadedView, NotFoundState } from './components/states.tsx';
import { showToast } from './components/toast.tsx';
import { forgetInvitation, invitationPath } from './invitation-link.ts';
import { ROLE_NAMES } from './members/role-names.ts';
import { organizationPath } from './page.ts';
import { navigate, query } from './router.ts';
import { loadSession, session, signOut } from './session.ts';
import { useLoaded } from './use-loaded.ts';

/** Shows what an invitation is for, and takes it up for whoever is signed in with its address. */
export default function InvitationPage() {
  const token = query.value.get('token');
  return token === null ? <NotFoundState /> : <Invited token={token} />;
}

function Invited({ token }: { readonly token: string }) {
  const invitation = useLoaded(() => {
    // Whoever is here need not be led here any more.
    forgetInvitation();
    return call(api.invitation.read.post({ token }));
  }, [token]);
  return (
    <LoadedView loaded={invitation}>
      {({ organization_id, organization_name, email, role }) => (
        <>
          <PageHeader
            title={`Join ${organization_name}`}
            description={`${email} is invited as ${ROLE_NAMES[role].toLowerCase()}.`}
          />
          {session.value.state !== 'signed_in' ? (
            <div class="form-actions">
              <ButtonLink href={`/console/sign-in?${new URLSearchParams({ return: invitationPath(token) })}`}>
                Sign in
              </ButtonLink>
              <ButtonLink
                kind="primary"
                href={`/console/sign-up?${new URLSearchParams({ invitation: token, email })}`}
              >
                Create an account
              </ButtonLink>
            </div>
          ) : session.value.user.email.toLowerCase() === email.toLowerCase() ? (
            <Form
              submit="Join"
              onSubmit={async () => {
                await call(api.invitation.accept.post({ token }));
                await loadSession();
                showToast(`You are now a member of ${organization_name}.`);
                navigate(organizationPath(organization_id, 'usage'), { replace: true });
              }}
            >
              {null}
            </Form>
          ) : (
            <Form submit="Sign out" onSubmit={() => signOut(invitationPath(token))}>
              <Notice tone="warning" title={`You are signed in as ${session.value.user.email}.`}>
                The invitation is for {email}: sign out, and go on with that address.
              </Notice>
            </Form>
          )}
        </>
      )}
    </LoadedView>
  );
}
