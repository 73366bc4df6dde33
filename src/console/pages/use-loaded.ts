import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError } from './client.ts';
import { noteShownPages, shownPages } from './router.ts';

/** The state of a load, with everything that a page must show. */
export interface Loaded<T> {
  /**
   * The last answer. It stays while the same inputs are loaded again, also where that fails; undefined before the first
   * and after other inputs.
   */
  readonly data: T | undefined;
  /** Why the last load failed. It stays while it is loaded again, so that it keeps the focus and is announced once. */
  readonly error: ApiError | undefined;
  readonly is_loading: boolean;
  /** Loads again; resolves with the answer or the error in place. */
  readonly reload: () => Promise<void>;
}

interface State<T> {
  readonly data: T | undefined;
  /** The inputs that the data belong to, by their number. */
  readonly data_of: number;
  readonly error: ApiError | undefined;
  readonly is_loading: boolean;
}

const NOTHING = { data: undefined, data_of: 0, error: undefined, is_loading: true } as const;

/**
 * Loads when the page is shown and whenever an input changes. A late answer to earlier inputs is dropped.
 * `keep_stale` shows the old answer while other inputs are loaded, for charts and tables with filters.
 */
export function useLoaded<T>(
  load: () => Promise<T>,
  inputs: readonly unknown[],
  { keep_stale = false }: { keep_stale?: boolean } = {},
): Loaded<T> {
  const [state, setState] = useState<State<T>>(NOTHING);
  const newest = useRef(0);
  const newest_inputs = useRef(0);
  const latest_load = useRef(load);
  latest_load.current = load;

  const run = useCallback(async (keep: boolean, keep_error: boolean) => {
    const turn = ++newest.current;
    const isStale = () => turn !== newest.current;
    setState(({ data, data_of, error }) => ({
      data: keep ? data : undefined,
      data_of,
      error: keep_error ? error : undefined,
      is_loading: true,
    }));
    try {
      const data = await latest_load.current();
      if (isStale()) return;
      setState({ data, data_of: newest_inputs.current, error: undefined, is_loading: false });
    } catch (thrown) {
      if (isStale()) return;
      setState(({ data, data_of }) => ({
        data: data_of === newest_inputs.current ? data : undefined,
        data_of,
        error: asApiError(thrown),
        is_loading: false,
      }));
    }
  }, []);

  const is_first = useRef(true);
  useEffect(() => {
    newest_inputs.current++;
    void run(keep_stale && !is_first.current, false);
    is_first.current = false;
    return () => {
      newest.current++;
    };
  }, inputs);

  const reload = useCallback(() => run(true, true), [run]);
  const { data, error, is_loading } = state;
  return { data, error, is_loading, reload };
}

/** One page of a list that grows without bound. */
export interface Page<T, Cursor = string> {
  readonly items: readonly T[];
  readonly next: Cursor | null;
}

/** The pages that are loaded in a row for a reader who comes back: each costs the service a read. */
const PAGES_AT_ONCE_MAX = 10;

/** A list that is read page by page; give it to `Table` as `more`. */
export interface LoadedPages<T> extends Loaded<readonly T[]> {
  /** Loads the next page; null when everything is shown. */
  readonly loadMore: (() => Promise<void>) | null;
}

/** The pages that the reader has asked for. */
interface More<T, Cursor> {
  /** The first pages, after which these come. */
  readonly after: readonly Page<T, Cursor>[] | undefined;
  readonly pages: readonly Page<T, Cursor>[];
  readonly error: ApiError | undefined;
  readonly is_loading: boolean;
}

const NO_MORE = { after: undefined, pages: [], error: undefined, is_loading: false } as const;

/** Loads the first page of a list, and the next ones on demand. A reader who comes back sees as many as before, up to ten. */
export function useLoadedPages<T, Cursor = string>(
  load: (cursor: Cursor | null) => Promise<Page<T, Cursor>>,
  inputs: readonly unknown[],
  options: { keep_stale?: boolean } = {},
): LoadedPages<T> {
  const first = useLoaded(
    async () => {
      const count = Math.min(shownPages(), PAGES_AT_ONCE_MAX);
      const loaded = [await load(null)];
      for (let next: Cursor | null = loaded[0]?.next ?? null; next !== null && loaded.length < count; ) {
        const following = await load(next).catch(() => null);
        // The reader can ask for the rest, and sees what it failed for.
        if (following === null) break;
        loaded.push(following);
        next = following.next;
      }
      return loaded;
    },
    inputs,
    options,
  );
  const [more, setMore] = useState<More<T, Cursor>>(NO_MORE);
  // Pages after other first pages are dropped, and so is the failure of one.
  const { pages, error } = more.after === first.data ? more : NO_MORE;
  const all = [...(first.data ?? []), ...pages];
  const next = all.at(-1)?.next ?? null;
  return {
    data: first.data === undefined ? undefined : all.flatMap(({ items }) => items),
    error: first.error ?? error,
    is_loading: first.is_loading || more.is_loading,
    reload: first.reload,
    loadMore:
      next === null
        ? null
        : async () => {
            // Before the answer, until which the reader may have gone to another place.
            noteShownPages(all.length + 1);
            const shown = { after: first.data, pages, error: undefined, is_loading: false };
            setMore({ ...shown, is_loading: true });
            try {
              setMore({ ...shown, pages: [...pages, await load(next)] });
            } catch (thrown) {
              setMore({ ...shown, error: asApiError(thrown) });
            }
          },
  };
}
