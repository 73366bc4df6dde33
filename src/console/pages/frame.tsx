import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { allows, type Role } from '../../contract/roles.ts';
import { AlertMenu } from './alerts/alert-menu.tsx';
import { Icon, type IconName } from './components/icon.tsx';
import { Menu } from './components/menu.tsx';
import { Notice } from './components/notice.tsx';
import { SegmentedControl } from './components/tabs.tsx';
import { attempt, Toasts } from './components/toast.tsx';
import { InboxCount } from './operator/inbox-count.tsx';
import { PAGE_GROUPS, type PageEntry, type PageGroup } from './page.ts';
import { PAGES } from './pages.ts';
import type { Destination } from './palette/matches.ts';
import { PaletteButton } from './palette/palette-button.tsx';
import { matchPath } from './paths.ts';
import { path } from './router.ts';
import {
  lastOrganization,
  type Organization,
  organization,
  organizations,
  session,
  signOut,
} from './session.ts';
import { THEMES, theme } from './theme.ts';
import { chooseTimeZone, TIME_ZONES, time_zone } from './time-zone.ts';

/** It belongs to no organization, and keeps the navigation of the one that the reader came from. */
const ACCOUNT_PATH = '/console/account';

/** Its number of waiting things stands in the navigation. */
const INBOX_PATH = '/console/operator/inbox';

const GROUP_NAMES: Readonly<Record<PageGroup, string>> = {
  build: 'Build',
  manage: 'Manage',
  account: 'Account',
  operate: 'Operate',
};

const TIME_ZONE_NAMES = { local: 'Local time', utc: 'UTC' } as const;
const THEME_NAMES = { system: 'System', light: 'Light', dark: 'Dark' } as const;

/** The frame of every page of a signed-in person: the bar, the navigation, and the toasts. */
export function Frame({ children }: { readonly children: ComponentChildren }) {
  const is_open = useSignal(false);
  const shown_path = path.value;
  useEffect(() => {
    is_open.value = false;
  }, [shown_path]);
  const links = navigation();
  return (
    <div class="frame">
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <header class="top-bar">
        {links.length > 0 && (
          <button
            type="button"
            class="button quiet navigation-button"
            aria-expanded={is_open.value}
            aria-controls="navigation"
            aria-label="Navigation"
            onClick={() => {
              is_open.value = !is_open.value;
            }}
          >
            <Icon name="menu" />
          </button>
        )}
        <Brand />
        <OrganizationMenu />
        <PaletteButton here={shownOrganization()} pages={pagesOf(links)} />
        <AlertMenu />
        <AccountMenu />
      </header>
      {links.length > 0 && (
        <nav id="navigation" class={is_open.value ? 'side is-open' : 'side'} aria-label="Pages">
          <div class="side-content">
            {links.map(({ group, items }) => (
              <div key={group} class="side-group">
                <p id={`group-${group}`}>{GROUP_NAMES[group]}</p>
                <ul aria-labelledby={`group-${group}`}>
                  {items.map(({ label, href, icon }) => (
                    <li key={href}>
                      <a href={href} aria-current={href === shown_path ? 'page' : undefined}>
                        <Icon name={icon} />
                        {label}
                        {href === INBOX_PATH && <InboxCount />}
                      </a>
                    </li>
                  ))}
                </ul>
              </div>
            ))}
          </div>
        </nav>
      )}
      <main id="content" tabIndex={-1}>
        {organization.value?.is_suspended === true && (
          <Notice tone="danger" title="The operator has suspended this organization.">
            Its keys are refused; ask the operator.
          </Notice>
        )}
        {children}
      </main>
      <Toasts />
    </div>
  );
}

/** The frame of the pages before sign-in: one column. */
export function PlainFrame({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="plain-frame">
      <header>
        <Brand />
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Toasts />
    </div>
  );
}

function Brand() {
  return (
    <a class="brand" href="/console">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" class="brand-ground" />
        <path d="M8 10h16M8 16h11M8 22h6" />
      </svg>
      <span>Decisions</span>
    </a>
  );
}

interface NavigationGroup {
  readonly group: PageGroup;
  readonly items: readonly { readonly label: string; readonly href: string; readonly icon: IconName }[];
}

/** The organization of the page, or on the account's page the one that the reader came from. */
function shownOrganization(): Organization | undefined {
  return organization.value ?? (path.value === ACCOUNT_PATH ? lastOrganization() : undefined);
}

/** The pages that the command palette leads to. */
function pagesOf(links: readonly NavigationGroup[]): readonly Destination[] {
  const pages = links.flatMap(({ items }) => items.map(({ label, href }) => ({ kind: 'Page', label, href })));
  return [...pages, { kind: 'Page', label: 'Your account', href: ACCOUNT_PATH }];
}

/** The documents are no page of the console, and stand among those for programs. */
const DOCS = { group: 'build', label: 'Docs', href: '/docs', icon: 'book-open' } as const;

/** The links that the reader may follow from here: of the organization, or of the operator. */
function navigation(): readonly NavigationGroup[] {
  const is_operator = session.value.state === 'signed_in' && session.value.user.is_operator;
  const is_operators_page = path.value.startsWith('/console/operator/');
  const here = shownOrganization();
  const links = PAGES.flatMap((page) => {
    const { audience, label, icon, group } = page;
    if (label === undefined || icon === undefined || group === undefined) return [];
    if (audience === 'operator' && is_operators_page && is_operator)
      return [{ group, label, icon, href: page.path }];
    if (audience !== 'organization' || here === undefined || !isOffered(page, here.role)) return [];
    return [{ group, label, icon, href: page.path.replace(':organization_id', here.id) }];
  });
  if (links.length === 0) return [];
  const all = [...links, { ...DOCS, group: is_operators_page ? ('operate' as const) : DOCS.group }];
  return PAGE_GROUPS.map((group) => ({
    group,
    items: all.filter((link) => link.group === group),
  })).filter(({ items }) => items.length > 0);
}

/** True if a role allows a page of its organization. */
export function isOffered({ permission }: PageEntry, role: Role): boolean {
  return permission === undefined || allows(role, permission);
}

function OrganizationMenu() {
  const here = shownOrganization();
  const all = organizations.value;
  const operator_page = PAGES.find(({ audience }) => audience === 'operator');
  const is_operator = session.value.state === 'signed_in' && session.value.user.is_operator;
  const name =
    here?.name ?? (path.value.startsWith('/console/operator/') ? 'Operator' : 'Choose an organization');
  return (
    <Menu button={<span class="menu-text">{name}</span>} label="Organization">
      <p class="menu-title">Organizations</p>
      {all.map((one) => (
        <a
          key={one.id}
          href={pathInOrganization(one)}
          aria-current={one.id === here?.id ? 'true' : undefined}
        >
          {one.name}
          <span class="muted">{one.role}</span>
        </a>
      ))}
      {is_operator && operator_page !== undefined && <a href={operator_page.path}>Operator pages</a>}
    </Menu>
  );
}

/** The same page of another organization, or its first where no such page is open or the role there does not allow it. */
function pathInOrganization({ id, role }: Organization): string {
  const offered = PAGES.filter((page) => page.audience === 'organization' && isOffered(page, role));
  const page = offered.find((one) => matchPath(one.path, path.value) !== null) ?? offered[0];
  return page?.path.replace(':organization_id', id) ?? '/console';
}

/** Returns the first character as a reader sees it, which may be several code units, such as those of an emoji. */
function initialOf(name: string): string {
  return (new Intl.Segmenter().segment(name).containing(0)?.segment ?? '').toUpperCase();
}

function AccountMenu() {
  if (session.value.state !== 'signed_in') return null;
  const { name, email } = session.value.user;
  return (
    <Menu
      button={
        <>
          <span class="avatar" aria-hidden="true">
            {initialOf(name)}
          </span>
          <span class="menu-text account-name">{name}</span>
        </>
      }
      label="Account"
      is_at_end
    >
      <p class="menu-title">{email}</p>
      <a href={ACCOUNT_PATH}>Your account</a>
      <div class="menu-theme">
        <SegmentedControl
          label="Colours"
          options={THEMES.map((value) => ({ value, label: THEME_NAMES[value] }))}
          value={theme.value}
          onChange={(chosen) => {
            theme.value = chosen;
          }}
        />
      </div>
      <div class="menu-theme">
        <SegmentedControl
          label="Times"
          options={TIME_ZONES.map((value) => ({ value, label: TIME_ZONE_NAMES[value] }))}
          value={time_zone.value}
          onChange={chooseTimeZone}
        />
      </div>
      <button type="button" onClick={() => void attempt(() => signOut())}>
        Sign out
      </button>
    </Menu>
  );
}
