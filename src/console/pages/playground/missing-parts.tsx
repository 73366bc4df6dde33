import { ButtonLink } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { CreditLink } from '../credit-link.tsx';
import { organizationPath } from '../paths.ts';
import type { Setup } from './asking-setup.ts';

/** Notices on what an organization must have before anything can be asked. */
export function MissingParts({
  organization_id,
  setup: { keys, can_pay },
}: {
  readonly organization_id: string;
  readonly setup: Setup;
}) {
  return (
    <>
      {keys.length === 0 && (
        <Notice
          tone="warning"
          title="You need an API key first."
          actions={
            <ButtonLink kind="primary" href={organizationPath(organization_id, 'keys')}>
              Create a key
            </ButtonLink>
          }
        >
          The playground asks with one of your keys. Its project pays and shows the usage.
        </Notice>
      )}
      {!can_pay && (
        <Notice
          tone="warning"
          title="You need credit to ask."
          actions={<CreditLink organization_id={organization_id} />}
        >
          Answers are paid from your organization's credit. An example costs less than a tenth of a cent.
        </Notice>
      )}
    </>
  );
}
