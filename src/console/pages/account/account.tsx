import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { CurrentPasswordField } from '../components/current-password.tsx';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { NameField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { NewPasswordField } from '../components/new-password.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader, Section } from '../components/page-header.tsx';
import { ErrorState, LoadedView } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { leaveFor } from '../leave.ts';
import { loadSession, noteSignedIn, session } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { AlertMails } from './alert-mails.tsx';
import { Passkeys } from './passkeys.tsx';
import { TwoStepSignIn } from './two-step-sign-in.tsx';

/** The reader's own account: name, password, sessions, deletion. */
export default function Account() {
  if (session.value.state !== 'signed_in') return null;
  const { name, email } = session.value.user;
  return (
    <>
      <PageHeader title="Your account" description={email} />
      <Section title="Name" description="Other members see it.">
        <div class="panel padded">
          <Form
            submit="Save name"
            fields={['name']}
            onSubmit={async (values) => {
              await call(api.account.patch({ name: values.text('name') }));
              await loadSession();
              showToast('Your name is saved.');
            }}
          >
            <NameField value={name} autocomplete="name" />
          </Form>
        </div>
      </Section>
      <Password />
      <TwoStepSignIn />
      <Passkeys />
      <AlertMails />
      <Sessions />
      <DeleteAccount />
    </>
  );
}

function Password() {
  const [changes, setChanges] = useState(0);
  return (
    <Section title="Password" description="Changing it signs you out everywhere else. Passkeys keep working.">
      <div class="panel padded">
        {/* Another key is an empty form. */}
        <Form
          key={changes}
          submit="Change password"
          fields={['password']}
          onSubmit={async (values) => {
            await call(
              api.password.post({
                current_password: values.exact('current_password'),
                new_password: values.exact('password'),
              }),
            );
            await loadSession();
            setChanges(changes + 1);
            showToast('Your password is changed.');
          }}
        >
          <CurrentPasswordField label="Current password" name="current_password" />
          <NewPasswordField label="New password" />
        </Form>
      </div>
    </Section>
  );
}

function Sessions() {
  const sessions = useLoaded(() => call(api.sessions.get()), []);
  const [ending, setEnding] = useState<string>();
  return (
    <Section
      title="Sessions"
      description="Where you are signed in."
      actions={
        (sessions.data?.items.length ?? 0) > 1 && (
          <Button onClick={() => setEnding('others')}>End all others…</Button>
        )
      }
    >
      {sessions.error !== undefined && <ErrorState error={sessions.error} onRetry={sessions.reload} />}
      {(sessions.data !== undefined || sessions.is_loading) && (
        <Table
          caption="Sessions"
          rows={sessions.data?.items}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Browser',
              is_name: true,
              cell: ({ user_agent, is_current }) => (
                <>
                  {browserOf(user_agent)} {is_current && <Badge tone="success">This one</Badge>}
                </>
              ),
            },
            { title: 'IP address', cell: ({ client_address }) => client_address },
            { title: 'Signed in', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
            { title: 'Last seen', cell: ({ last_seen_at_ms }) => <Time time_ms={last_seen_at_ms} /> },
            { title: 'Ends', cell: ({ expires_at_ms }) => <Time time_ms={expires_at_ms} /> },
            {
              ...ACTIONS,
              cell: ({ id, is_current, user_agent }) =>
                !is_current && (
                  <Button
                    size="small"
                    label={`End the session of ${browserOf(user_agent)}`}
                    onClick={() => setEnding(id)}
                  >
                    End
                  </Button>
                ),
            },
          ]}
        />
      )}
      <ConfirmDialog
        title={ending === 'others' ? 'End all other sessions?' : 'End this session?'}
        action={ending === 'others' ? 'End sessions' : 'End session'}
        is_open={ending !== undefined}
        onClose={() => setEnding(undefined)}
        onConfirm={async () => {
          if (ending === undefined) return;
          await call(
            ending === 'others'
              ? api.sessions['end-others'].post()
              : api.sessions({ session_id: ending }).delete(),
          );
          await sessions.reload();
          showToast(ending === 'others' ? 'The other sessions are ended.' : 'The session is ended.');
        }}
      >
        <p>Whoever uses it must sign in again.</p>
      </ConfirmDialog>
    </Section>
  );
}

function DeleteAccount() {
  const [is_open, setOpen] = useState(false);
  return (
    <Section
      title="Delete account"
      description="You leave all your organizations. Keys that you created keep working."
    >
      <div>
        <Button kind="danger" onClick={() => setOpen(true)}>
          Delete account…
        </Button>
      </div>
      <Dialog title="Delete your account?" is_open={is_open} onClose={() => setOpen(false)}>
        <Form
          submit="Delete account"
          kind="danger"
          fields={['password']}
          onCancel={() => setOpen(false)}
          onSubmit={async (values) => {
            await call(api.account.delete({ password: values.exact('password') }));
            noteSignedIn(false);
            await leaveFor('/console/sign-in');
          }}
        >
          {is_open && <DeletionPreview />}
          <p>This cannot be undone. Enter your password to go on.</p>
          <CurrentPasswordField />
        </Form>
      </Dialog>
    </Section>
  );
}

const PREVENTIONS = {
  last_owner: 'You are its last owner: make somebody else an owner first.',
  organization_has_credit:
    'You are its only member, and it has credit or running requests: use it up, or hand it over first.',
} as const;

/** The organizations that close with the account, and those that prevent its deletion. */
function DeletionPreview() {
  const preview = useLoaded(() => call(api.account.deletion.get()), []);
  return (
    <LoadedView loaded={preview} lines={1}>
      {({ closes, prevented_by }) => (
        <>
          {closes.length > 0 && (
            <p>
              This also closes{' '}
              {closes.map(({ id, name }, at) => (
                <Fragment key={id}>
                  {at > 0 && ', '}
                  <bdi>{name}</bdi>
                </Fragment>
              ))}
              , where you are the only member, and revokes its keys.
            </p>
          )}
          {prevented_by.map(({ id, name, reason }) => (
            <Notice
              key={id}
              tone="warning"
              title={
                <>
                  You cannot leave <bdi>{name}</bdi> yet
                </>
              }
            >
              {PREVENTIONS[reason]}
            </Notice>
          ))}
        </>
      )}
    </LoadedView>
  );
}

/** Returns a browser's common name, because its own text is long and misleading. */
function browserOf(user_agent: string): string {
  const browsers = [
    ['Edg/', 'Edge'],
    ['Firefox/', 'Firefox'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
  ] as const;
  const systems = [
    ['Android', 'Android'],
    ['iPhone', 'iPhone'],
    ['Windows', 'Windows'],
    ['Mac OS', 'macOS'],
    ['Linux', 'Linux'],
  ] as const;
  const browser = browsers.find(([mark]) => user_agent.includes(mark))?.[1] ?? 'Other browser';
  const system = systems.find(([mark]) => user_agent.includes(mark))?.[1];
  return system === undefined ? browser : `${browser} on ${system}`;
}
