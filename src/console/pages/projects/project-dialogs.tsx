import { type AnswerOf, api, call, type OfOrganization } from '../client.ts';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { NameField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { LIMIT_FIELD, LimitField } from '../components/limit-field.tsx';
import { showToastAbout } from '../components/toast.tsx';
import { enteredAmount } from '../entered-amount.ts';
import { formatCount } from '../format.ts';

type ProjectList = AnswerOf<OfOrganization['projects']['get']>;

/** A project of the API's list. */
export type Project = ProjectList['items'][number];

interface DialogProps {
  readonly organization_id: string;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

/** A dialog that asks for the name of a new project. */
export function CreateProjectDialog({
  organization_id,
  is_open,
  onDone,
  onClose,
}: DialogProps & { readonly is_open: boolean }) {
  return (
    <Dialog title="Create a project" is_open={is_open} onClose={onClose}>
      <Form
        submit="Create project"
        fields={['name']}
        onCancel={onClose}
        onSubmit={async (values) => {
          const name = values.text('name');
          await call(api.organizations({ organization_id }).projects.post({ name }));
          await onDone();
          showToastAbout(name, 'is created.');
        }}
        onDone={onClose}
      >
        <NameField help="Such as the name of a product or a customer." />
      </Form>
    </Dialog>
  );
}

/** A dialog that asks for another name and limit of a project; undefined for none. */
export function EditProjectDialog({
  organization_id,
  project,
  onDone,
  onClose,
}: DialogProps & { readonly project: Project | undefined }) {
  return (
    <Dialog title={`Edit ${project?.name ?? ''}`} is_open={project !== undefined} onClose={onClose}>
      {project !== undefined && (
        <Form
          submit="Save"
          fields={['name', LIMIT_FIELD]}
          onCancel={onClose}
          onSubmit={async (values) => {
            const name = values.text('name');
            const spend_limit_micros = enteredAmount(values.text(LIMIT_FIELD), LIMIT_FIELD);
            await call(
              api
                .organizations({ organization_id })
                .projects({ project_id: project.id })
                // Unchanged values are not sent, because somebody else may have changed them meanwhile.
                .patch({
                  ...(name === project.name ? {} : { name }),
                  ...(spend_limit_micros === project.spend_limit_micros ? {} : { spend_limit_micros }),
                }),
            );
            await onDone();
            showToastAbout(name, 'is saved.');
          }}
          onDone={onClose}
        >
          <NameField value={project.name} />
          <LimitField limit_micros={project.spend_limit_micros} />
        </Form>
      )}
    </Dialog>
  );
}

/**
 * A dialog that asks before a project is archived, and shows the number of keys that end; undefined for none.
 */
export function ArchiveProjectDialog({
  organization_id,
  project,
  onDone,
  onClose,
}: DialogProps & { readonly project: Project | undefined }) {
  return (
    <ConfirmDialog
      title={`Archive ${project?.name ?? ''}?`}
      action="Archive project"
      is_open={project !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        if (project === undefined) return;
        await call(
          api.organizations({ organization_id }).projects({ project_id: project.id }).archive.post(),
        );
        await onDone();
        showToastAbout(project.name, 'is archived.');
      }}
    >
      {project !== undefined && (
        <>
          <p>
            {project.active_keys === 0 ? (
              'It has no active keys.'
            ) : (
              <>
                <strong>{formatCount(project.active_keys, 'active key')}</strong>{' '}
                {project.active_keys === 1 ? 'ends' : 'end'} with it: programs that use{' '}
                {project.active_keys === 1 ? 'it' : 'them'} are refused within 60 seconds.
              </>
            )}
          </p>
          <p>Its usage stays in the charts and exports. This cannot be undone.</p>
        </>
      )}
    </ConfirmDialog>
  );
}
