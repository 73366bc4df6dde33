import { mayTouchRole, ROLES, type Role } from '../../../contract/roles.ts';
import type { Option } from '../components/field.tsx';

/** The permissions of each role in words, as in the contract's role table. */
export const ROLE_TEXTS: Readonly<Record<Role, string>> = {
  owner: 'Does everything, and makes other owners.',
  admin: 'Manages members, projects, keys and billing, but not owners.',
  developer: 'Creates keys and uses the playground. Revokes own keys.',
  billing: 'Tops up credit, and sees what a reader sees.',
  reader: 'Sees members, projects, keys, usage and billing.',
};

export const ROLE_NAMES: Readonly<Record<Role, string>> = {
  owner: 'Owner',
  admin: 'Admin',
  developer: 'Developer',
  billing: 'Billing',
  reader: 'Reader',
};

/** Returns the roles that a member with this role may give: only owners make owners. */
export function rolesToGive(own: Role): readonly Option<Role>[] {
  return ROLES.filter((role) => mayTouchRole(own, role)).map((role) => ({
    value: role,
    label: ROLE_NAMES[role],
  }));
}
