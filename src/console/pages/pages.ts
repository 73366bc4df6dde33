import type { PageEntry } from './page.ts';

/** Every page of the console, in the order of the navigation. A new page is one line here. */
export const PAGES: readonly PageEntry[] = [
  { path: '/console', audience: 'signed_in', load: () => import('./home.tsx') },
  { path: '/console/sign-in', audience: 'anyone', load: () => import('./sign-in.tsx') },
  { path: '/console/sign-up', audience: 'anyone', load: () => import('./sign-up.tsx') },
  { path: '/console/verify', audience: 'anyone', load: () => import('./verify.tsx') },
  { path: '/console/reset', audience: 'anyone', load: () => import('./reset.tsx') },
  { path: '/console/invitation', audience: 'anyone', load: () => import('./invitation.tsx') },
  { path: '/console/account', audience: 'signed_in', load: () => import('./account.tsx') },
  {
    path: '/console/o/:organization_id/keys',
    audience: 'organization',
    label: 'Keys',
    permission: 'see',
    load: () => import('./keys/keys.tsx'),
  },
  {
    path: '/console/o/:organization_id/projects',
    audience: 'organization',
    label: 'Projects',
    permission: 'see',
    load: () => import('./projects/projects.tsx'),
  },
  {
    path: '/console/o/:organization_id/members',
    audience: 'organization',
    label: 'Members',
    permission: 'see',
    load: () => import('./members/members.tsx'),
  },
  {
    path: '/console/o/:organization_id/settings',
    audience: 'organization',
    label: 'Settings',
    permission: 'see',
    load: () => import('./settings.tsx'),
  },
];
