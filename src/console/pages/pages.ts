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
  {
    path: '/console/o/:organization_id/usage',
    audience: 'organization',
    label: 'Usage',
    permission: 'see',
    load: () => import('./usage/usage.tsx'),
  },
  {
    path: '/console/o/:organization_id/trail',
    audience: 'organization',
    label: 'Audit trail',
    permission: 'see_trail',
    load: () => import('./trail.tsx'),
  },
  {
    path: '/console/operator/organizations',
    audience: 'operator',
    label: 'Organizations',
    load: () => import('./operator/organizations.tsx'),
  },
  {
    path: '/console/operator/organizations/:organization_id',
    audience: 'operator',
    load: () => import('./operator/organization.tsx'),
  },
  {
    path: '/console/operator/models',
    audience: 'operator',
    label: 'Models',
    load: () => import('./operator/models.tsx'),
  },
  {
    path: '/console/operator/live',
    audience: 'operator',
    label: 'Live',
    load: () => import('./operator/live.tsx'),
  },
  {
    path: '/console/operator/audit',
    audience: 'operator',
    label: 'Ledger audit',
    load: () => import('./operator/audit.tsx'),
  },
  {
    path: '/console/operator/problems',
    audience: 'operator',
    label: 'Problems',
    load: () => import('./operator/problems.tsx'),
  },
  {
    path: '/console/operator/trail',
    audience: 'operator',
    label: 'Service trail',
    load: () => import('./operator/trail.tsx'),
  },
  { path: '/console/account', audience: 'signed_in', load: () => import('./account.tsx') },
  {
    path: '/console/o/:organization_id/playground',
    audience: 'organization',
    label: 'Playground',
    permission: 'use_keys',
    load: () => import('./playground/playground.tsx'),
  },
];
