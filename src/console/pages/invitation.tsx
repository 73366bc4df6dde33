import { api, asApiError, call } from './client.ts';
import { ButtonLink } from './components/button.tsx';
import { Form } from './components/form.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { EmptyState, LoadedView } from './components/states.tsx';
import { showToast } from './components/toast.tsx';
import { forgetInvitation, INVITATION_PATH, keepInvitation, keptInvitation } from './invitation-link.ts';
import { useLinkToken } from './link-token.ts';
import { ROLE_NAMES } from './members/role-names.ts';
import { organizationPath } from './page.ts';
import { navigate } from './router.ts';
import { loadSession, session, signOut } from './session.ts';
import { useLoaded } from './use-loaded.ts';

/** An invitation, which the signed-in owner of its address can accept. */
export default function InvitationPage() {
  const [of_link] = useLinkToken();
  const token = of_link ?? keptInvitation()?.token ?? null;
  if (token !== null) return <Invited token={token} />;
  return (
    <EmptyState title="No invitation is open here">
      Open the link in the mail of your invitation again.
    </EmptyState>
  );
}

/** The refusals after which the link is useless. */
const ENDED: readonly string[] = ['not_found', 'invitation_ended', 'already_member'];

/** Returns the service's answer about an invitation, which is removed when it has ended. */
async function answered<Answer>(token: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (ENDED.includes(asApiError(error).code)) forgetInvitation(token);
    throw error;
  }
}

function Invited({ token }: { readonly token: string }) {
  const invitation = useLoaded(async () => {
    const offered = await answered(token, call(api.invitation.read.post({ token })));
    keepInvitation({ token, email: offered.email });
    return offered;
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
              <ButtonLink href={`/console/sign-in?${new URLSearchParams({ return: INVITATION_PATH })}`}>
                Sign in
              </ButtonLink>
              <ButtonLink kind="primary" href={`/console/sign-up?${new URLSearchParams({ email })}`}>
                Create an account
              </ButtonLink>
            </div>
          ) : session.value.user.email.toLowerCase() === email.toLowerCase() ? (
            <Form
              submit="Join"
              onSubmit={async () => {
                await answered(token, call(api.invitation.accept.post({ token })));
                forgetInvitation(token);
                await loadSession();
                showToast(`You are now a member of ${organization_name}.`);
                navigate(organizationPath(organization_id, 'usage'), { replace: true });
              }}
            >
              {null}
            </Form>
          ) : (
            <Form submit="Sign out" onSubmit={() => signOut(INVITATION_PATH)}>
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
