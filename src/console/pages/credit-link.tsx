import { ButtonLink } from './components/button.tsx';
import { organizationPath } from './paths.ts';
import { may } from './session.ts';

/** A link to buy credit, for members who may. */
export function CreditLink({ organization_id }: { readonly organization_id: string }) {
  return may('top_up') ? (
    <ButtonLink kind="primary" href={organizationPath(organization_id, 'billing')}>
      Add credit
    </ButtonLink>
  ) : (
    <span>An owner, admin or billing member can add credit.</span>
  );
}
