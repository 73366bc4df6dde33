import type { ComponentType } from 'preact';
import type { Permission } from '../../accounts/roles.ts';

/** What every page is given: the named parts of its path. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

/** One page. Its file exports the component as `default`, and is loaded when it is shown first. */
export interface PageEntry {
  readonly path: string;
  /** Who may open it; a page of an organization has its navigation. */
  readonly audience: 'anyone' | 'signed_in' | 'organization' | 'operator';
  /** Its name in the navigation; none where no link leads to it. */
  readonly label?: string;
  /** What the reader's role must allow for the page to be offered. */
  readonly permission?: Permission;
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
}

/** The address of a page of an organization: `organizationPath(id, 'usage')`. */
export function organizationPath(organization_id: string, page: string): string {
  return `/console/o/${organization_id}/${page}`;
}
