import { useEffect, useState } from 'preact/hooks';
import { Button } from './components/button.tsx';
import { Notice } from './components/notice.tsx';
import { reloadDocument } from './link-token.ts';

const RETRY_MS = 2_000;

/**
 * Stands for a page whose code did not come. While the service cannot be reached, it asks again and again. As soon as it
 * is back the document is loaded anew, because browsers do not ask twice for code that once failed to load. Where the
 * service answers and has no such code, it may be of another version, and the reader decides.
 */
export function MissingPage() {
  const [is_away, setAway] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let was_away = false;
    let is_shown = true;
    const ask = async () => {
      const is_there = await isServiceThere();
      if (!is_shown) return;
      if (is_there) {
        if (was_away) reloadDocument();
        return;
      }
      was_away = true;
      setAway(true);
      timer = setTimeout(ask, RETRY_MS);
    };
    void ask();
    return () => {
      is_shown = false;
      clearTimeout(timer);
    };
  }, []);
  return is_away ? (
    <Notice tone="danger" title="The service cannot be reached.">
      <p>This page was not loaded yet. It opens by itself as soon as the service answers.</p>
    </Notice>
  ) : (
    <Notice
      tone="danger"
      title="This page could not be loaded."
      actions={<Button onClick={reloadDocument}>Load it again</Button>}
    >
      The console may have been updated since you opened it.
    </Notice>
  );
}

async function isServiceThere(): Promise<boolean> {
  try {
    return (await fetch('/console', { method: 'HEAD', cache: 'no-store' })).status < 500;
  } catch {
    return false;
  }
}
