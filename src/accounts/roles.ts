/** The roles of the contract's role table; a member has exactly one. */
export const ROLES = ['owner', 'admin', 'developer', 'billing', 'reader'] as const;

export type Role = (typeof ROLES)[number];

/**
 * What each role may do in its organization. Keys follow the contract's role table; a creator may besides always revoke
 * a key of their own. Everything that only the operator may do has no row here.
 */
const PERMISSIONS = {
  /** See members, projects, keys, usage, credit and its history. */
  see: ['owner', 'admin', 'developer', 'billing', 'reader'],
  /** See the audit trail: who did what when. */
  see_trail: ['owner'],
  manage_organization: ['owner', 'admin'],
  /** Add, change and remove members; owners only by owners (`mayTouchRole`). */
  manage_members: ['owner', 'admin'],
  /** Create and archive projects and set their spend limits. */
  manage_projects: ['owner', 'admin'],
  /** Ask with a key of the organization without knowing its secret, which spends credit: whoever could make a key. */
  use_keys: ['owner', 'admin', 'developer'],
  create_keys: ['owner', 'admin', 'developer'],
  revoke_any_key: ['owner', 'admin'],
  top_up: ['owner', 'admin', 'billing'],
} as const satisfies Record<string, readonly Role[]>;

export type Permission = keyof typeof PERMISSIONS;

/** Whether a role has a permission. */
export function allows(role: Role, permission: Permission): boolean {
  const roles: readonly Role[] = PERMISSIONS[permission];
  return roles.includes(role);
}

/** Whether a member may give and take a role, where they manage members at all: owners are made by owners only. */
export function mayTouchRole(own: Role, role: Role): boolean {
  return role !== 'owner' || own === 'owner';
}

/** Whether a member may invite others with a role. */
export function mayInviteAs(own: Role, role: Role): boolean {
  return allows(own, 'manage_members') && mayTouchRole(own, role);
}
