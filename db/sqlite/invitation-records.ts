import { and, count, desc, eq, getTableColumns, gt, inArray, isNull, type SQL } from 'drizzle-orm';
import type {
  Invitation,
  InvitationRecords,
  ListedInvitation,
} from '../../src/accounts/invitation-records.ts';
import type { Role } from '../../src/accounts/roles.ts';
import type { Db } from './connection.ts';
import { invitations, organizations, users } from './schema.ts';
import type { Access } from './transactions.ts';

/** Invitations into organizations in SQLite. */
export class SqliteInvitationRecords implements InvitationRecords {
  readonly #db: Db;
  readonly #access: Access;

  constructor(db: Db, access: Access) {
    this.#db = db;
    this.#access = access;
  }

  insertInvitation(invitation: Invitation): Promise<void> {
    return this.#access.write(() => this.#db.insert(invitations).values(invitation).run());
  }

  findInvitation(invitation_id: string): Promise<Invitation | undefined> {
    return this.#find(eq(invitations.id, invitation_id));
  }

  findInvitationByToken(token_sha256: string): Promise<Invitation | undefined> {
    return this.#find(eq(invitations.token_sha256, token_sha256));
  }

  openInvitations(organization_id: string, now_ms: number): Promise<ListedInvitation[]> {
    return this.#list(and(eq(invitations.organization_id, organization_id), isOpen(now_ms)));
  }

  countOpen(organization_id: string, now_ms: number): Promise<number> {
    return this.#access.read(() => {
      const row = this.#db
        .select({ number: count() })
        .from(invitations)
        .where(and(eq(invitations.organization_id, organization_id), isOpen(now_ms)))
        .get();
      return row?.number ?? 0;
    });
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

  revokeInvitationsBy(
    organization_id: string,
    user_id: string,
    roles: readonly Role[],
    now_ms: number,
  ): Promise<number> {
    return this.#access.write(
      () =>
        this.#db
          .update(invitations)
          .set({ revoked_at_ms: now_ms })
          .where(openBy(organization_id, user_id, roles, now_ms))
          .returning({ id: invitations.id })
          .all().length,
    );
  }

  async forgetAddress(email: string, instead: string, revoked_at_ms: number): Promise<void> {
    await this.#update({ revoked_at_ms }, and(eq(invitations.email, email), hasNotEnded()));
    await this.#update({ email: instead }, eq(invitations.email, email));
  }

  #find(condition: SQL): Promise<Invitation | undefined> {
    return this.#access.read(() => this.#db.select().from(invitations).where(condition).get());
  }

  #list(condition: SQL | undefined): Promise<ListedInvitation[]> {
    const { token_sha256: _, ...columns } = getTableColumns(invitations);
    return this.#access.read(() =>
      this.#db
        .select({ ...columns, organization_name: organizations.name, invited_by_name: users.name })
        .from(invitations)
        .innerJoin(organizations, eq(organizations.id, invitations.organization_id))
        .leftJoin(users, eq(users.id, invitations.invited_by_user_id))
        .where(condition)
        .orderBy(desc(invitations.created_at_ms), desc(invitations.id))
        .all(),
    );
  }

  #update(values: Partial<Invitation>, condition: SQL | undefined): Promise<void> {
    return this.#access.write(() => this.#db.update(invitations).set(values).where(condition).run());
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
