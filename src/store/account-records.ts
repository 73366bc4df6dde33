import type { Role } from '../contract/roles.ts';

/** A person who can be a member of organizations. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly created_at_ms: number;
}

/** The properties of a user beyond their roles. */
export interface UserStanding {
  readonly email_verified: boolean;
  readonly is_operator: boolean;
  /** The time at which the user deleted their account; the row stays, without name and address. */
  readonly deleted_at_ms: number | null;
}

/** An owner of credit and tier, as stored. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  /** The user whose personal organization this is, if it is one. */
  readonly personal_user_id: string | null;
  /** The tier that was last stored. */
  readonly tier: number;
  /** May be negative: a refund can take back credit that was already spent. */
  readonly credit_micros: number;
  /** The credit that open holds reserve, and their number. */
  readonly held_micros: number;
  readonly open_holds: number;
  /** The lifetime purchases less refunds, and the time of the first one. */
  readonly paid_micros: number;
  readonly first_paid_at_ms: number | null;
  /** The operator's settings; null where the tier's value applies. */
  readonly minimum_tier: number | null;
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
  readonly questions_per_request: number | null;
  readonly top_up_max_micros: number | null;
  readonly created_at_ms: number;
  /** The time since which the organization is suspended; null while its keys work. */
  readonly suspended_at_ms: number | null;
  /** The credit below which members are alerted; null for no alert. */
  readonly credit_alert_micros: number | null;
}

/** An organization in the operator's search. */
export interface FoundOrganization extends Organization {
  readonly members: number;
  /** The time at which one of its keys was last used; null for never. */
  readonly last_used_at_ms: number | null;
}

/** A search for organizations, newest first. */
export interface OrganizationSearch {
  /** Finds only the organization with that id. */
  readonly id?: string | undefined;
  /** A part of the name, of the id or of a member's email address; empty for all. */
  readonly text: string;
  /** Finds only those that nobody owns. */
  readonly without_owner?: boolean | undefined;
  /** Finds only those after this one in the list. */
  readonly after: Pick<Organization, 'id' | 'created_at_ms'> | null;
  readonly limit: number;
}

/**
 * The operator's settings for one organization. A missing field stays as it is; null restores the tier's
 * value.
 */
export interface TierSettings {
  /** The lowest tier of the organization. */
  readonly minimum_tier?: number | null;
  readonly requests_per_minute?: number | null;
  readonly tokens_per_minute?: number | null;
  readonly questions_per_request?: number | null;
  readonly top_up_max_micros?: number | null;
}

export const TIER_CHANGE_REASONS = ['top_up', 'refund', 'time', 'operator'] as const;
export type TierChangeReason = (typeof TIER_CHANGE_REASONS)[number];

/** A change of an organization's tier, with its cause. */
export interface TierChange {
  readonly id: number;
  readonly organization_id: string;
  readonly from_tier: number;
  readonly to_tier: number;
  readonly reason: TierChangeReason;
  readonly created_at_ms: number;
}

/** A reference to a member of an organization. */
export interface MemberRef {
  readonly organization_id: string;
  readonly user_id: string;
}

export interface Member {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly created_at_ms: number;
  /** True if their sign-in needs a code beside the password. */
  readonly has_second_factor: boolean;
}

/** A group of keys and usage; null for no limit. */
export interface Project {
  readonly id: string;
  readonly organization_id: string;
  readonly name: string;
  readonly spend_limit_micros: number | null;
  readonly archived_at_ms: number | null;
  readonly created_at_ms: number;
}

/** A listed project, with its spending in the current UTC month. */
export interface ListedProject extends Project {
  readonly organization_name: string;
  readonly spent_this_month_micros: number;
  /** The number of keys that archiving the project revokes. */
  readonly active_keys: number;
}

/** A filter for projects. */
export interface ProjectFilter {
  /** Lists only those of organizations with this user as a member. */
  readonly member_user_id?: string | undefined;
  readonly organization_id?: string | undefined;
  readonly archived: boolean;
  /** The UTC month (`YYYY-MM`) whose spending is shown. */
  readonly month: string;
}

/** The ways to sign in that a user had. */
export interface EndedSignIns {
  readonly passkeys: number;
  /** True if there was a second factor that a first code had confirmed. */
  readonly had_second_factor: boolean;
}

/** The stored users, organizations, members and projects. Lists are oldest first. */
export interface AccountRecords {
  findUser(user_id: string): Promise<User | undefined>;
  findUserByEmail(email: string): Promise<User | undefined>;
  allUsers(): Promise<User[]>;
  standingOf(user_id: string): Promise<UserStanding | undefined>;
  insertUser(user: User): Promise<void>;
  renameUser(user_id: string, name: string): Promise<void>;
  /** Deletes a user's password, sessions, mailed links, second factor and passkeys. */
  deleteSignIns(user_id: string): Promise<EndedSignIns>;
  /** Removes a user's name, address, operator's power, sessions, alerts and ways to sign in; the row stays. */
  anonymizeUser(
    user_id: string,
    values: Pick<User, 'email' | 'name'> & { readonly deleted_at_ms: number },
  ): Promise<void>;

  findOrganization(organization_id: string): Promise<Organization | undefined>;
  allOrganizations(): Promise<Organization[]>;
  /** Returns the organizations with payments that were not refunded, in any order. */
  paidOrganizations(): Promise<Organization[]>;
  searchOrganizations(search: OrganizationSearch): Promise<FoundOrganization[]>;
  /** Returns the personal organization of a user. */
  findPersonalOrganization(user_id: string): Promise<Organization | undefined>;
  /** Returns true if there is any organization. */
  hasOrganizations(): Promise<boolean>;
  /** Returns at most `limit` organizations of that name, in any order. */
  organizationsNamed(name: string, limit: number): Promise<Organization[]>;
  /** Returns the organizations that a user is a member of. */
  organizationsOf(user_id: string): Promise<Organization[]>;
  insertOrganization(
    organization: Pick<Organization, 'id' | 'name' | 'personal_user_id' | 'created_at_ms'>,
  ): Promise<void>;
  renameOrganization(organization_id: string, name: string): Promise<void>;
  writeSuspension(organization_id: string, suspended_at_ms: number | null): Promise<void>;
  writeTierSettings(organization_id: string, settings: TierSettings): Promise<void>;

  writeTier(organization_id: string, tier: number): Promise<void>;
  insertTierChange(change: Omit<TierChange, 'id'>): Promise<void>;
  /** Returns the newest changes, newest first. */
  tierChanges(organization_id: string, limit: number): Promise<TierChange[]>;

  /** Returns the role of a user in an organization; null for a user who is not a member. */
  roleOf(member: MemberRef): Promise<Role | null>;
  membersOf(organization_id: string): Promise<Member[]>;
  /** Returns the number of members of an organization, or of those with that role. */
  countMembers(organization_id: string, role?: Role): Promise<number>;
  /** Returns the number of organizations that a user owns. */
  countOwned(user_id: string): Promise<number>;
  insertMember(member: MemberRef & { readonly role: Role; readonly created_at_ms: number }): Promise<void>;
  writeRole(member: MemberRef, role: Role): Promise<void>;
  /** Deletes a membership, and the alerts that came with it. */
  deleteMember(member: MemberRef): Promise<void>;

  findProject(project_id: string): Promise<Project | undefined>;
  /** Returns the active project of that name. */
  findActiveProject(organization_id: string, name: string): Promise<Project | undefined>;
  /** Returns at most `limit` active projects of that name, of one organization or of any, in any order. */
  activeProjectsNamed(name: string, organization_id: string | undefined, limit: number): Promise<Project[]>;
  listProjects(filter: ProjectFilter): Promise<ListedProject[]>;
  /** Returns the number of active projects of an organization. */
  countActiveProjects(organization_id: string): Promise<number>;
  insertProject(project: Pick<Project, 'id' | 'organization_id' | 'name' | 'created_at_ms'>): Promise<void>;
  renameProject(project_id: string, name: string): Promise<void>;
  writeSpendLimit(project_id: string, spend_limit_micros: number | null): Promise<void>;
  archiveProject(project_id: string, archived_at_ms: number): Promise<void>;

  /** Gives a user the operator's power in the console, or removes it. */
  writeOperator(user_id: string, is_operator: boolean): Promise<void>;
}
