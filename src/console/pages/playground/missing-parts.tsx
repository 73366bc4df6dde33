import { ButtonLink } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { CreditLink } from '../credit-link.tsx';
import { organizationPath } from '../page.ts';
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
          title="There is no API key yet."
          actions={
            <ButtonLink kind="primary" href={organizationPath(organization_id, 'keys')}>
              Create a key
            </ButtonLink>
          }
        >
          This page asks with a key of the organization, so that its project pays and shows the usage.
        </Notice>
      )}
      {!can_pay && (
        <Notice
          tone="warning"
          title="There is no credit to ask with."
          actions={<CreditLink organization_id={organization_id} />}
        >
          Every answer is paid from the organization's credit. An example costs less than a tenth of a cent.
        </Notice>
      )}
    </>
  );
}
