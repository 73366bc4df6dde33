import { useState } from 'preact/hooks';
import { AuditLogView } from '../audit-log-view.tsx';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader, Section } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { MoneyTile, Tile } from '../components/tile.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { formatCount, formatMoney } from '../format.ts';
import { MemberTable } from '../members/member-table.tsx';
import type { PageProps } from '../page.ts';
import { useLoaded } from '../use-loaded.ts';
import { CreditActions } from './credit-dialogs.tsx';
import { InviteOwner } from './invite-owner.tsx';
import { Limits } from './limits.tsx';
import { PendingPayments } from './pending-payments.tsx';
import type { OrganizationProps, WholeOrganization } from './whole-organization.ts';

/** One organization, as the operator sees it. */
export default function OperatorsOrganization({ params: { organization_id = '' } }: PageProps) {
  const organization = useLoaded(
    () => call(api.operator.organizations({ organization_id }).get()),
    [organization_id],
  );
  // Each change is an entry of the audit log.
  const [changes, setChanges] = useState(0);
  const onChange = async () => {
    await organization.reload();
    setChanges((count) => count + 1);
  };
  return (
    <>
      <p class="back-link">
        <a href="/console/operator/organizations">All organizations</a>
      </p>
      <LoadedView loaded={organization}>
        {(data) => (
          <>
            <PageHeader
              title={data.name}
              description={
                <>
                  <code class="wrap">{data.id}</code>, {data.is_personal ? 'personal, ' : ''}created{' '}
                  <Time time_ms={data.created_at_ms} />
                </>
              }
              actions={<Suspension organization={data} onChange={onChange} />}
            />
            <div class="stack">
              {data.suspended_at_ms !== null && (
                <Notice tone="danger" title="Suspended">
                  Its keys have been refused since <Time time_ms={data.suspended_at_ms} />.
                </Notice>
              )}
              <Facts organization={data} />
            </div>
            <Section
              title="Credit"
              description="For money that was received or returned outside of the payment provider."
              actions={<CreditActions organization={data} onChange={onChange} />}
            >
              <PendingPayments organization={data} onChange={onChange} />
            </Section>
            <Limits organization={data} onChange={onChange} />
            <Members organization={data} onChange={onChange} />
            <Section title="Audit log">
              <AuditLogView
                of="organization"
                inputs={[organization_id, changes]}
                load={(query) => call(api.operator.organizations({ organization_id }).trail.get({ query }))}
              />
            </Section>
          </>
        )}
      </LoadedView>
    </>
  );
}

function Facts({ organization }: { readonly organization: WholeOrganization }) {
  const { credit_micros, held_micros, open_holds, paid_micros, tier_in_force, last_used_at_ms } =
    organization;
  return (
    <dl class="tiles">
      <MoneyTile title="Credit" micros={credit_micros} />
      <MoneyTile title={`Held by ${formatCount(open_holds, 'request')}`} micros={held_micros} />
      <Tile title="Paid in total" value={formatMoney(paid_micros)} />
      <Tile title="Tier" value={tier_in_force} />
      <Tile title="Last used" value={<Time time_ms={last_used_at_ms} />} />
    </dl>
  );
}

function Suspension({ organization: { id, name, suspended_at_ms }, onChange }: OrganizationProps) {
  const [is_open, setOpen] = useState(false);
  const is_suspended = suspended_at_ms !== null;
  return (
    <>
      <Button kind={is_suspended ? 'primary' : 'danger'} onClick={() => setOpen(true)}>
        {is_suspended ? 'Resume…' : 'Suspend…'}
      </Button>
      <ConfirmDialog
        title={is_suspended ? `Resume ${name}?` : `Suspend ${name}?`}
        action={is_suspended ? 'Resume' : 'Suspend'}
        is_dangerous={!is_suspended}
        is_open={is_open}
        onClose={() => setOpen(false)}
        onConfirm={async () => {
          const { suspension } = api.operator.organizations({ organization_id: id });
          await call(suspension.post({ is_suspended: !is_suspended }));
          // The dialog closes before the page shows the opposite.
          void onChange();
          showToast(
            is_suspended ? (
              <>
                The keys of <bdi>{name}</bdi> work again.
              </>
            ) : (
              <>
                <bdi>{name}</bdi> is suspended.
              </>
            ),
          );
        }}
      >
        <p>
          {is_suspended
            ? 'Its keys work at once.'
            : 'Its keys are refused at once. Requests that run are finished and charged. Its members can still use the console.'}
        </p>
      </ConfirmDialog>
    </>
  );
}

function Members({ organization: { id, member_list }, onChange }: OrganizationProps) {
  return (
    <Section
      title="Members"
      actions={
        member_list.length === 0 ? <InviteOwner organization_id={id} onInvited={onChange} /> : undefined
      }
    >
      <MemberTable
        members={member_list}
        empty={
          <EmptyState title="No members">
            Nobody can use it in the console before it has an owner. Invite one, or use “tds member add” on
            the server.
          </EmptyState>
        }
      />
    </Section>
  );
}
