import { and, desc, eq, getTableColumns, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Role } from '../../src/contract/roles.ts';
import type { Invitation, InvitationRecords, ListedInvitation } from '../../src/store/invitation-records.ts';
import { invitations, organizations, users } from '../tables.ts';
import { countRows } from './count-rows.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

/** Invitations into organizations. */
export class SqlInvitationRecords implements InvitationRecords {
  constructor(private readonly executor: Executor) {}

  async insertInvitation(invitation: Invitation): Promise<void> {
    await this.executor.insert(invitations).values(invitation);
  }

  findInvitation(invitation_id: string): Promise<Invitation | undefined> {
    return this.#find(eq(invitations.id, invitation_id));
  }

  findInvitationByToken(token_sha256: string): Promise<Invitation | undefined> {
    return this.#find(eq(invitations.token_sha256, token_sha256));
  }

  async openInvitations(organization_id: string, now_ms: number): Promise<ListedInvitation[]> {
    const { token_sha256: _, ...columns } = getTableColumns(invitations);
    return await this.executor
      .select({ ...columns, organization_name: organizations.name, invited_by_name: users.name })
      .from(invitations)
      .innerJoin(organizations, eq(organizations.id, invitations.organization_id))
      .leftJoin(users, eq(users.id, invitations.invited_by_user_id))
      .where(and(eq(invitations.organization_id, organization_id), isOpen(now_ms)))
      .orderBy(desc(invitations.created_at_ms), desc(invitations.id));
  }

  countOpen(organization_id: string, now_ms: number): Promise<number> {
    const is_counted = and(eq(invitations.organization_id, organization_id), isOpen(now_ms));
    return countRows(this.executor, invitations, is_counted);
  }

  renewInvitation(
    invitation_id: string,
    values: Pick<Invitation, 'invited_by_user_id' | 'token_sha256' | 'expires_at_ms'>,
  ): Promise<void> {
    const { invited_by_user_id, token_sha256, expires_at_ms } = values;
    return this.#update(
      { invited_by_user_id, token_sha256, expires_at_ms },
      eq(invitations.id, invitation_id),
    );
  }

  acceptInvitation(invitation_id: string, accepted_at_ms: number): Promise<void> {
    return this.#update({ accepted_at_ms }, eq(invitations.id, invitation_id));
  }

  revokeInvitation(invitation_id: string, revoked_at_ms: number): Promise<void> {
    return this.#update({ revoked_at_ms }, eq(invitations.id, invitation_id));
  }

  revokeInvitationsInto(organization_id: string, email: string | null, revoked_at_ms: number): Promise<void> {
    const of_email = email === null ? undefined : eq(invitations.email, email);
    return this.#update(
      { revoked_at_ms },
      and(eq(invitations.organization_id, organization_id), of_email, hasNotEnded()),
    );
  }

  async revokeInvitationsBy(
    organization_id: string,
    user_id: string,
    roles: readonly Role[],
    now_ms: number,
  ): Promise<number> {
    const revoked = await this.executor
      .update(invitations)
      .set({ revoked_at_ms: now_ms })
      .where(openBy(organization_id, user_id, roles, now_ms))
      .returning({ id: invitations.id });
    return revoked.length;
  }

  async forgetAddress(email: string, instead: string, revoked_at_ms: number): Promise<void> {
    await this.executor
      .update(invitations)
      .set({
        email: instead,
        revoked_at_ms: sql`CASE WHEN ${hasNotEnded()} THEN ${revoked_at_ms} ELSE ${invitations.revoked_at_ms} END`,
      })
      .where(eq(invitations.email, email));
  }

  #find(condition: SQL): Promise<Invitation | undefined> {
    return firstRow(this.executor.select().from(invitations).where(condition));
  }

  async #update(values: Partial<Invitation>, condition: SQL | undefined): Promise<void> {
    await this.executor.update(invitations).set(values).where(condition);
  }
}

/** Returns the condition that an invitation was neither accepted nor revoked. */
function hasNotEnded(): SQL | undefined {
  return and(isNull(invitations.accepted_at_ms), isNull(invitations.revoked_at_ms));
}

function isOpen(now_ms: number): SQL | undefined {
  return and(hasNotEnded(), gt(invitations.expires_at_ms, now_ms));
}

/** Returns the condition for a user's open invitations into an organization with one of these roles. */
function openBy(
  organization_id: string,
  user_id: string,
  roles: readonly Role[],
  now_ms: number,
): SQL | undefined {
  return and(
    eq(invitations.organization_id, organization_id),
    eq(invitations.invited_by_user_id, user_id),
    inArray(invitations.role, [...roles]),
    isOpen(now_ms),
  );
}
