import type { Role } from '../../../contract/roles.ts';
import { Select } from '../components/field.tsx';
import { ROLE_TEXTS, rolesToGive } from './role-names.ts';

/** A field that chooses a role, and shows its permissions. */
export function RoleField({
  own_role,
  value,
  onChange,
}: {
  /** The role of the reader, who may give no higher one. */
  readonly own_role: Role;
  readonly value: Role;
  readonly onChange: (role: Role) => void;
}) {
  return (
    <Select
      label="Role"
      name="role"
      options={rolesToGive(own_role)}
      value={value}
      onChange={onChange}
      help={ROLE_TEXTS[value]}
    />
  );
}
