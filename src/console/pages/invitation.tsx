import { type AnswerOf, api, asApiError, call } from './client.ts';
import { ButtonLink } from './components/button.tsx';
import { NameField, TextField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { NewPasswordField } from './components/new-password.tsx';
import { Notice } from './components/notice.tsx';
import { PageHeader } from './components/page-header.tsx';
import { EmptyState, LoadedView } from './components/states.tsx';
import { showToast } from './components/toast.tsx';
import { forgetInvitation, INVITATION_PATH, keepInvitation, keptInvitation } from './invitation-link.ts';
import { useLinkToken } from './link-token.ts';
import { ROLE_NAMES } from './members/role-names.ts';
import { organizationPath } from './paths.ts';
import { navigate } from './router.ts';
import { loadSession, session, signOut } from './session.ts';
import { useLoaded } from './use-loaded.ts';

/** An invitation, which the signed-in owner of its address can accept. */
export default function InvitationPage() {
  const [of_link] = useLinkToken();
  const token = of_link ?? keptInvitation();
  if (token !== null) return <Invited token={token} />;
  return (
    <EmptyState title="No invitation is open here" is_page>
      Open the link in your invitation again.
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

/** The invitation, as the service describes it to the holder of its link. */
type Offered = AnswerOf<typeof api.invitation.read.post>;

function Invited({ token }: { readonly token: string }) {
  const invitation = useLoaded(async () => {
    const offered = await answered(token, call(api.invitation.read.post({ token })));
    keepInvitation(token);
    return offered;
  }, [token]);
  const code = invitation.error?.code;
  if (code === 'not_found') return <UnknownLink />;
  if (code === 'invitation_ended') return <EndedInvitation />;
  return (
    <LoadedView loaded={invitation}>
      {(offered) => (
        <>
          <PageHeader
            title={`Join ${offered.organization_name}`}
            description={`${offered.email} is invited as ${ROLE_NAMES[offered.role].toLowerCase()}.`}
          />
          {session.value.state === 'signed_in' ? (
            <JoinSignedIn offered={offered} token={token} email={session.value.user.email} />
          ) : offered.has_account ? (
            <div class="form-actions">
              <ButtonLink
                kind="primary"
                href={`/console/sign-in?${new URLSearchParams({ return: INVITATION_PATH })}`}
              >
                Sign in to join
              </ButtonLink>
            </div>
          ) : (
            <JoinNew offered={offered} token={token} />
          )}
        </>
      )}
    </LoadedView>
  );
}

/** Stands for an invitation of which the service knows nothing. */
function UnknownLink() {
  return (
    <EmptyState
      title="This invitation link is not valid"
      is_page
      actions={<ButtonLink href="/console">Go to the start</ButtonLink>}
    >
      It may have been cut when it was copied: open it from the mail. If that does not help, ask whoever
      invited you for a new invitation.
    </EmptyState>
  );
}

/** Stands for an invitation that leads nowhere any more. */
function EndedInvitation() {
  return (
    <EmptyState
      title="This invitation has ended"
      is_page
      actions={<ButtonLink href="/console">Go to your organizations</ButtonLink>}
    >
      It was used or revoked, or has expired. If you have joined already, go on to your organizations. If not,
      ask whoever invited you for a new invitation.
    </EmptyState>
  );
}

/** The way of somebody who is signed in already. */
function JoinSignedIn({
  offered,
  token,
  email,
}: {
  readonly offered: Offered;
  readonly token: string;
  readonly email: string;
}) {
  if (email.toLowerCase() !== offered.email.toLowerCase()) {
    return (
      <Form submit="Sign out" onSubmit={() => signOut(INVITATION_PATH)}>
        <Notice tone="warning" title={`You are signed in as ${email}.`}>
          The invitation is for {offered.email}. Sign out, and continue with that email address.
        </Notice>
      </Form>
    );
  }
  return (
    <Form
      submit="Join"
      onSubmit={async () => {
        await answered(token, call(api.invitation.accept.post({ token })));
        await enter(offered, token);
      }}
    >
      {null}
    </Form>
  );
}

/** The account of an invited address and its membership in one step: the mailed link has proved the address. */
function JoinNew({ offered, token }: { readonly offered: Offered; readonly token: string }) {
  return (
    <Form
      submit="Create account and join"
      fields={['name', 'password']}
      onSubmit={async (values) => {
        const account = { token, name: values.text('name'), password: values.exact('password') };
        await answered(token, call(api.invitation['sign-up'].post(account)));
        await enter(offered, token);
      }}
    >
      <TextField
        label="Email address"
        name="email"
        type="email"
        autocomplete="username"
        value={offered.email}
        is_disabled
      />
      <NameField autocomplete="name" />
      <NewPasswordField />
    </Form>
  );
}

/** Shows the organization to its new member. */
async function enter({ organization_id, organization_name }: Offered, token: string): Promise<void> {
  forgetInvitation(token);
  await loadSession();
  showToast(
    <>
      You are now a member of <bdi>{organization_name}</bdi>.
    </>,
  );
  navigate(organizationPath(organization_id, 'overview'), { replace: true });
}
