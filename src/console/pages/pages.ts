import type { Permission } from '../../contract/roles.ts';
import type { IconName } from './components/icon.tsx';
import type { PageEntry, PageGroup } from './page.ts';
import { organizationPath } from './paths.ts';

type Load = PageEntry['load'];

/** Returns the pages of rows: the last part of the path, the name and icon in the navigation, the permission, the file. */
function ofOrganization(
  group: PageGroup,
  rows: readonly (readonly [string, string, IconName, Permission, Load])[],
): readonly PageEntry[] {
  return rows.map(([page, label, icon, permission, load]) => {
    const path = organizationPath(':organization_id', page);
    return { path, audience: 'organization', group, label, icon, permission, load };
  });
}

function ofOperator(rows: readonly (readonly [string, string, IconName, Load])[]): readonly PageEntry[] {
  return rows.map(([page, label, icon, load]) => {
    return { path: `/console/operator/${page}`, audience: 'operator', group: 'operate', label, icon, load };
  });
}

/** Every page of the console, in the order of the navigation. A new page is an entry here. */
export const PAGES: readonly PageEntry[] = [
  { path: '/console', audience: 'signed_in', load: () => import('./home.tsx') },
  { path: '/console/sign-in', audience: 'anyone', load: () => import('./sign-in.tsx') },
  { path: '/console/sign-up', audience: 'anyone', load: () => import('./sign-up.tsx') },
  { path: '/console/verify', audience: 'anyone', load: () => import('./verify.tsx') },
  { path: '/console/reset', audience: 'anyone', load: () => import('./reset.tsx') },
  { path: '/console/invitation', audience: 'anyone', load: () => import('./invitation.tsx') },
  { path: '/console/account', audience: 'signed_in', load: () => import('./account/account.tsx') },
  ...ofOrganization('build', [
    ['overview', 'Overview', 'layout-dashboard', 'see', () => import('./overview/overview.tsx')],
    ['playground', 'Playground', 'square-terminal', 'use_keys', () => import('./playground/playground.tsx')],
    ['batch', 'Batch', 'rows-3', 'use_keys', () => import('./batch/batch.tsx')],
    ['evaluate', 'Evaluate', 'target', 'use_keys', () => import('./evaluate/evaluate.tsx')],
    ['models', 'Models', 'box', 'see', () => import('./models/models.tsx')],
    ['keys', 'Keys', 'key-round', 'see', () => import('./keys/keys.tsx')],
    ['usage', 'Usage', 'chart-column', 'see', () => import('./usage/usage.tsx')],
  ]),
  ...ofOrganization('manage', [
    ['projects', 'Projects', 'folder', 'see', () => import('./projects/projects.tsx')],
    ['members', 'Members', 'users', 'see', () => import('./members/members.tsx')],
    ['trail', 'Audit log', 'scroll-text', 'see_audit_log', () => import('./audit-log.tsx')],
  ]),
  ...ofOrganization('account', [
    ['billing', 'Billing', 'credit-card', 'see', () => import('./billing/billing.tsx')],
    ['settings', 'Settings', 'settings', 'see', () => import('./settings.tsx')],
  ]),
  ...ofOperator([
    ['inbox', 'Inbox', 'inbox', () => import('./operator/inbox.tsx')],
    ['organizations', 'Organizations', 'building-2', () => import('./operator/organizations.tsx')],
    ['models', 'Models', 'box', () => import('./operator/models.tsx')],
    ['live', 'Live', 'activity', () => import('./operator/live.tsx')],
    ['audit', 'Ledger audit', 'shield-check', () => import('./operator/audit.tsx')],
    ['problems', 'Problems', 'triangle-alert', () => import('./operator/problems.tsx')],
    ['trail', 'Service audit log', 'scroll-text', () => import('./operator/audit-log.tsx')],
  ]),
  {
    path: '/console/operator/organizations/:organization_id',
    audience: 'operator',
    load: () => import('./operator/organization.tsx'),
  },
];
