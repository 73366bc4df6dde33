import { useState } from 'preact/hooks';
import { api, call } from './client.ts';
import { Button } from './components/button.tsx';
import { CopyText } from './components/copy-button.tsx';
import { Dialog } from './components/dialog.tsx';
import { NameField } from './components/field.tsx';
import { Form } from './components/form.tsx';
import { PageHeader, Section } from './components/page-header.tsx';
import { LoadedView } from './components/states.tsx';
import { showToast, showToastAbout } from './components/toast.tsx';
import { LeaveDialog } from './members/leave-dialog.tsx';
import type { PageProps } from './page.ts';
import { organizationPath } from './paths.ts';
import { navigate } from './router.ts';
import { loadSession, may, type Organization, organization, session } from './session.ts';
import { useLoaded } from './use-loaded.ts';

/** The organization's settings: its name and id, creating another one, leaving it. */
export default function Settings(_: PageProps) {
  const here = organization.value;
  if (here === undefined || session.value.state !== 'signed_in') return null;
  return (
    <>
      <PageHeader title="Organization settings" description={here.name} />
      {may('manage_organization') && <Name here={here} />}
      <Section title="Organization id" description="Support asks for it. It never changes.">
        <div class="id-text">
          <CopyText text={here.id} />
        </div>
      </Section>
      <Found />
      <Leave here={here} user_id={session.value.user.id} />
    </>
  );
}

function Name({ here }: { readonly here: Organization }) {
  return (
    <Section title="Name" description="Members and invited people see it.">
      <div class="panel padded">
        <Form
          submit="Save name"
          fields={['name']}
          onSubmit={async (values) => {
            const name = values.text('name');
            await call(api.organizations({ organization_id: here.id }).patch({ name }));
            await loadSession();
            showToast('The name is saved.');
          }}
        >
          <NameField value={here.name} />
        </Form>
      </div>
    </Section>
  );
}

function Found() {
  const [is_open, setOpen] = useState(false);
  return (
    <Section
      title="Another organization"
      description="It has its own members, projects, credit and limits, and you own it."
    >
      <Button onClick={() => setOpen(true)}>Create an organization…</Button>
      <Dialog title="Create an organization" is_open={is_open} onClose={() => setOpen(false)}>
        <Form
          submit="Create organization"
          fields={['name']}
          onCancel={() => setOpen(false)}
          onSubmit={async (values) => {
            const name = values.text('name');
            const { id } = await call(api.organizations.post({ name }));
            await loadSession();
            showToastAbout(name, 'is created.');
            return id;
          }}
          onDone={(id) => navigate(organizationPath(id, 'keys'))}
        >
          <NameField />
        </Form>
      </Dialog>
    </Section>
  );
}

function Leave({ here, user_id }: { readonly here: Organization; readonly user_id: string }) {
  const { id: organization_id, name } = here;
  const [is_open, setOpen] = useState(false);
  const members = useLoaded(() => call(api.organizations({ organization_id }).members.get()), []);
  return (
    <Section title="Leave" description="You lose access, and the organization stays.">
      <LoadedView loaded={members} lines={1}>
        {({ items }) =>
          here.role === 'owner' && items.filter(({ role }) => role === 'owner').length === 1 ? (
            <p>
              You are the only owner: make{' '}
              <a href={organizationPath(organization_id, 'members')}>another member an owner</a> first.
            </p>
          ) : (
            <Button kind="danger" onClick={() => setOpen(true)}>
              Leave organization…
            </Button>
          )
        }
      </LoadedView>
      <LeaveDialog
        {...{ organization_id, user_id, is_open }}
        organization_name={name}
        onClose={() => setOpen(false)}
      />
    </Section>
  );
}
