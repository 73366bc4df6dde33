/** The roles of the contract's role table; a member has exactly one. */
export const ROLES = ['owner', 'admin', 'developer', 'billing', 'reader'] as const;

export type Role = (typeof ROLES)[number];

/**
 * The roles that have each permission in their organization. Those on keys follow the contract's role table,
 * and the creator of a key can also always revoke it. The operator's own permissions have no row here.
 */
const PERMISSIONS = {
  /** To see members, projects, keys, usage, credit and its history. */
  see: ['owner', 'admin', 'developer', 'billing', 'reader'],
  /** To read the audit log. */
  see_audit_log: ['owner'],
  manage_organization: ['owner', 'admin'],
  /** To add, change and remove members; only owners may do so with owners (`mayTouchRole`). */
  manage_members: ['owner', 'admin'],
  /** To create and archive projects and set their spend limits. */
  manage_projects: ['owner', 'admin'],
  /** To add and remove models of the organization's own, which change what its requests are answered. */
  manage_models: ['owner', 'admin'],
  /**
   * To use a key of the organization without its secret, which spends credit: the roles that can create a
   * key.
   */
  use_keys: ['owner', 'admin', 'developer'],
  create_keys: ['owner', 'admin', 'developer'],
  revoke_any_key: ['owner', 'admin'],
  top_up: ['owner', 'admin', 'billing'],
} as const satisfies Record<string, readonly Role[]>;

export type Permission = keyof typeof PERMISSIONS;

/** Returns true if a role has a permission. */
export function allows(role: Role, permission: Permission): boolean {
  const roles: readonly Role[] = PERMISSIONS[permission];
  return roles.includes(role);
}

/** Returns true if a member who manages members may give and remove a role: only owners make owners. */
export function mayTouchRole(own: Role, role: Role): boolean {
  return role !== 'owner' || own === 'owner';
}

/** Returns true if a member may invite others with a role. */
export function mayInviteAs(own: Role, role: Role): boolean {
  return allows(own, 'manage_members') && mayTouchRole(own, role);
}
