import { type ComponentType, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Skeleton } from './components/skeleton.tsx';
import { ErrorState, ForbiddenState, NotFoundState } from './components/states.tsx';
import { focusContent } from './focus-content.ts';
import { Frame, isOffered, PlainFrame } from './frame.tsx';
import { keepFocus } from './keep-focus.ts';
import { MissingPage } from './missing-page.tsx';
import type { PageEntry, PageProps } from './page.ts';
import { PAGES } from './pages.ts';
import { matchPath } from './paths.ts';
import { navigate, path, startRouter } from './router.ts';
import { loadSession, organization, returnToPage, session } from './session.ts';
import { startTheme } from './theme.ts';

/** The page of the address, within its frame, with sign-in where it needs one. */
function Console() {
  const entry = PAGES.find((page) => matchPath(page.path, path.value) !== null);
  const is_for_anyone = entry?.audience === 'anyone';
  const { state } = session.value;
  useEffect(() => {
    if (state !== 'signed_out' || is_for_anyone) return;
    const here = location.pathname + location.search;
    const wanted = here === '/console' ? '' : `?return=${encodeURIComponent(here)}`;
    // A link's request is in the fragment, where no server and no referrer sees it.
    navigate(`/console/sign-in${wanted}${location.hash}`, { replace: true });
  }, [state, is_for_anyone]);

  const shown_path = path.value;
  const focused_path = useRef(shown_path);
  useEffect(() => {
    if (focused_path.current === shown_path) return;
    focused_path.current = shown_path;
    // Screen readers read on from the new page, because the link is gone.
    focusContent();
  }, [shown_path]);

  if (session.value.state === 'failed') {
    return (
      <PlainFrame>
        <ErrorState error={session.value.error} onRetry={loadSession} />
      </PlainFrame>
    );
  }
  if (is_for_anyone && state !== 'loading') {
    return (
      <PlainFrame>
        <LoadedPage entry={entry} />
      </PlainFrame>
    );
  }
  if (state !== 'signed_in') {
    return (
      <PlainFrame>
        <Skeleton />
      </PlainFrame>
    );
  }
  return (
    <Frame>
      <AllowedPage entry={entry} />
    </Frame>
  );
}

function AllowedPage({ entry }: { readonly entry: PageEntry | undefined }) {
  const is_operator = session.value.state === 'signed_in' && session.value.user.is_operator;
  // A page that the reader may not know about does not exist for them.
  if (entry === undefined || (entry.audience === 'operator' && !is_operator))
    return <NotFoundState is_page />;
  if (entry.audience === 'organization') {
    if (organization.value === undefined) return <NotFoundState is_page />;
    if (!isOffered(entry, organization.value.role)) return <ForbiddenState is_page />;
  }
  return <LoadedPage entry={entry} />;
}

type Shown =
  | { readonly entry: PageEntry; readonly Component: ComponentType<PageProps> }
  /** Its code did not come. */
  | { readonly entry: PageEntry; readonly is_missing: true };

function LoadedPage({ entry }: { readonly entry: PageEntry }) {
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    let is_current = true;
    entry.load().then(
      (module) => is_current && setShown({ entry, Component: module.default }),
      () => is_current && setShown({ entry, is_missing: true }),
    );
    return () => {
      is_current = false;
    };
  }, [entry]);
  if (shown?.entry !== entry) return <Skeleton lines={4} />;
  if ('is_missing' in shown) return <MissingPage />;
  const { Component } = shown;
  // Another organization is another page with its own state.
  return <Component key={path.value} params={matchPath(entry.path, path.value) ?? {}} />;
}

startTheme();
startRouter();
keepFocus();
void loadSession();
window.addEventListener('pageshow', ({ persisted }) => {
  if (persisted) void returnToPage();
});
// Its code loads beside the session; a failure is shown when the page itself is loaded.
PAGES.find((page) => matchPath(page.path, path.value) !== null)
  ?.load()
  .catch(() => undefined);
const place = document.getElementById('page');
if (place !== null) render(<Console />, place);
