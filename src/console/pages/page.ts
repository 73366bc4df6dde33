import type { ComponentType } from 'preact';
import type { Permission } from '../../contract/roles.ts';
import type { IconName } from './components/icon.tsx';

/** The properties of every page: the named parts of its path. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

/** The parts of the navigation, in its order. */
export const PAGE_GROUPS = ['build', 'manage', 'account', 'operate'] as const;

export type PageGroup = (typeof PAGE_GROUPS)[number];

/** One page. Its file exports the component as `default`, and is loaded when it is shown first. */
export interface PageEntry {
  readonly path: string;
  /** The people who may open it; a page of an organization has its navigation. */
  readonly audience: 'anyone' | 'signed_in' | 'organization' | 'operator';
  /** Its name in the navigation; none where no link leads to it. */
  readonly label?: string;
  readonly icon?: IconName;
  /** Under which heading of the navigation it stands. */
  readonly group?: PageGroup;
  /** The permission of the reader's role without which the page is not offered. */
  readonly permission?: Permission;
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
}
