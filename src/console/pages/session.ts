import { computed, effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { allows, type Permission } from '../../contract/roles.ts';
import { store, stored } from './browser-storage.ts';
import { type AnswerOf, type ApiError, api, asApiError, call, setCsrfToken } from './client.ts';
import { leaveFor, stay } from './leave.ts';
import { reloadDocument } from './link-token.ts';
import { path } from './router.ts';

type SessionAnswer = AnswerOf<typeof api.session.get>;
type SignedIn = Exclude<SessionAnswer, { user: null }>;
type SignedOut = Extract<SessionAnswer, { user: null }>;
type SessionState =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly error: ApiError }
  | ({ readonly state: 'signed_out' } & SignedOut)
  | ({ readonly state: 'signed_in' } & SignedIn);

export type Organization = SignedIn['organizations'][number];

/** The session, loaded once with the document, and again after sign-in. */
export const session = signal<SessionState>({ state: 'loading' });

/** The organizations of the signed-in person. */
export const organizations = computed(() =>
  session.value.state === 'signed_in' ? session.value.organizations : [],
);

/** The organization of the address, if it is one of the reader's. */
export const organization = computed(() => {
  const [, , section, id] = path.value.split('/');
  return section === 'o' ? organizations.value.find((one) => one.id === id) : undefined;
});

const LAST_STORED_AS = 'tds-organization';

// A new tab and the next sign-in open it again. The tab's own comes first where two tabs show different ones.
effect(() => {
  if (organization.value === undefined) return;
  store(LAST_STORED_AS, organization.value.id, 'sessionStorage');
  store(LAST_STORED_AS, organization.value.id);
});

/** The organization that was shown last in this tab, or else in this browser; undefined where the reader has none such. */
export function lastShownOrganization(): Organization | undefined {
  const find = (last_id: string | null) => organizations.value.find(({ id }) => id === last_id);
  return find(stored(LAST_STORED_AS, 'sessionStorage')) ?? find(stored(LAST_STORED_AS));
}

/** The organization that was shown last, or else the reader's first. */
export function lastOrganization(): Organization | undefined {
  return lastShownOrganization() ?? organizations.value[0];
}

/** True if the reader's role in the shown organization has a permission. The server checks every action again. */
export function may(permission: Permission): boolean {
  return organization.value !== undefined && allows(organization.value.role, permission);
}

const SIGNED_IN_STORED_AS = 'tds-signed-in';

/** Notes in this browser that somebody is signed in, or has signed out. A session that is lost leaves the note. */
export function noteSignedIn(is_signed_in: boolean): void {
  // A browser that stores nothing learns of a lost session by its cookie only. The time tells other tabs each time.
  store(SIGNED_IN_STORED_AS, is_signed_in ? String(Date.now()) : null);
}

/** Loads the session of a page that is signed out, when another tab has signed in. */
export function useSignInElsewhere(): void {
  useEffect(() => {
    const follow = ({ key, newValue }: StorageEvent) => {
      const is_sign_in = key === SIGNED_IN_STORED_AS && newValue !== null;
      if (is_sign_in && session.value.state === 'signed_out') void loadSession();
    };
    addEventListener('storage', follow);
    return () => removeEventListener('storage', follow);
  }, []);
}

/** Loads the session. Never rejects: a failure is a state of `session`. */
export async function loadSession(): Promise<void> {
  try {
    const answer = await call(api.session.get());
    if (answer.user === null) {
      setCsrfToken(null);
      // A browser without its cookies has no trace of the session but the note.
      session.value = {
        state: 'signed_out',
        ...answer,
        has_ended: answer.has_ended || stored(SIGNED_IN_STORED_AS) !== null,
      };
    } else {
      setCsrfToken(answer.csrf_token);
      noteSignedIn(true);
      session.value = { state: 'signed_in', ...answer };
    }
  } catch (error) {
    session.value = { state: 'failed', error: asApiError(error) };
  }
}

/** Ends the session, and loads the next page as a new document, so that nothing is left in this one. */
export async function signOut(next = '/console/sign-in'): Promise<void> {
  await call(api['sign-out'].post());
  noteSignedIn(false);
  await leaveFor(next);
}

/**
 * Hides a page that the browser restores, until it is known who is signed in. For another person it is
 * reloaded, so that nothing of the earlier one is left. It keeps its layout meanwhile, because the scroll
 * position depends on it.
 */
export async function returnToPage(): Promise<void> {
  const user_id = userId();
  const { documentElement, activeElement } = document;
  documentElement.style.visibility = 'hidden';
  await loadSession();
  if (session.value.state === 'failed' && user_id !== null) return reloadDocument();
  // The token of a mailed link is not for another person who has signed in.
  if (userId() !== user_id) return location.reload();
  documentElement.style.visibility = '';
  // The browser removes the focus from hidden elements.
  if (activeElement instanceof HTMLElement) activeElement.focus({ preventScroll: true });
  stay();
}

function userId(): string | null {
  return session.value.state === 'signed_in' ? session.value.user.id : null;
}
