import type { PageEntry } from './page.ts';

/** Every page of the console, in the order of the navigation. A new page is one line here. */
export const PAGES: readonly PageEntry[] = [
  { path: '/console', audience: 'signed_in', load: () => import('./home.tsx') },
  {
    path: '/console/o/:organization_id/overview',
    audience: 'organization',
    label: 'Overview',
    permission: 'see',
    load: () => import('./overview/overview.tsx'),
  },
  {
    path: '/console/o/:organization_id/billing',
    audience: 'organization',
    label: 'Billing',
    permission: 'see',
    load: () => import('./billing/billing.tsx'),
  },
  { path: '/console/sign-in', audience: 'anyone', load: () => import('./sign-in.tsx') },
  { path: '/console/sign-up', audience: 'anyone', load: () => import('./sign-up.tsx') },
  { path: '/console/verify', audience: 'anyone', load: () => import('./verify.tsx') },
  { path: '/console/reset', audience: 'anyone', load: () => import('./reset.tsx') },
  { path: '/console/invitation', audience: 'anyone', load: () => import('./invitation.tsx') },
  { path: '/console/account', audience: 'signed_in', load: () => import('./account.tsx') },
];
