import { useId, useMemo, useState } from 'preact/hooks';
import { Dialog } from '../components/dialog.tsx';
import { requestPath } from '../paths.ts';
import { navigate } from '../router.ts';
import type { Organization } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { loadDestinations, otherOrganizations } from './destinations.ts';
import { type Destination, matches } from './matches.ts';

/** The beginning of the id of any request. */
const REQUEST_PREFIX = 'req_';

interface CommandPaletteProps {
  /** The organization whose projects, keys and requests are found; undefined where none is shown. */
  readonly here: Organization | undefined;
  /** The pages of the navigation. */
  readonly pages: readonly Destination[];
  readonly is_open: boolean;
  readonly onClose: () => void;
}

/** A dialog that leads to any page, project, key, request or document by a few letters of it. */
export function CommandPalette({ is_open, onClose, ...props }: CommandPaletteProps) {
  return (
    <Dialog title="Go to" is_open={is_open} onClose={onClose}>
      <Search {...props} onClose={onClose} />
    </Dialog>
  );
}

function Search({ here, pages, onClose }: Omit<CommandPaletteProps, 'is_open'>) {
  const id = useId();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const loaded = useLoaded(
    () => (here === undefined ? Promise.resolve([]) : loadDestinations(here)),
    [here?.id],
  );
  const found = useMemo(() => {
    const all = [...pages, ...otherOrganizations(here), ...(loaded.data ?? [])];
    const shown = matches(all, text);
    const request_id = text.trim();
    const is_listed = shown.some(({ label }) => label === request_id);
    if (here === undefined || is_listed || !request_id.startsWith(REQUEST_PREFIX)) return shown;
    const older = { kind: 'Request', label: request_id, href: requestPath(here.id, request_id) };
    return [...shown, older];
  }, [pages, here, loaded.data, text]);
  const at = Math.min(chosen, found.length - 1);
  const go = ({ href }: Destination) => {
    onClose();
    if (href.startsWith('/console')) navigate(href);
    else location.assign(href);
  };
  return (
    <div class="palette">
      <input
        type="text"
        role="combobox"
        aria-label="Search pages, projects, keys, requests and docs"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${at}`}
        aria-autocomplete="list"
        placeholder="Pages, projects, keys, request ids, docs"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
          const target = found[at];
          if (step !== 0) {
            event.preventDefault();
            setChosen((at + step + found.length) % Math.max(1, found.length));
          } else if (event.key === 'Enter' && target !== undefined) {
            event.preventDefault();
            go(target);
          }
        }}
      />
      <div id={`${id}-list`} class="palette-list" role="listbox" aria-label="Results">
        {found.map((one, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keyboard's focus.
          <div
            key={`${one.kind} ${one.href}`}
            id={`${id}-${index}`}
            class="palette-option"
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onPointerMove={() => setChosen(index)}
            onClick={() => go(one)}
          >
            <span class="palette-label">{one.label}</span>
            <span class="muted">{one.kind}</span>
          </div>
        ))}
      </div>
      <p class="muted" role="status">
        {found.length === 0 ? (loaded.is_loading ? 'Searching…' : 'No results.') : ''}
      </p>
    </div>
  );
}
