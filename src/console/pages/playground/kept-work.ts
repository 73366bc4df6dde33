import { signal } from '@preact/signals';
import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import type { BatchSetup } from '../batch/setup.ts';
import { store } from '../browser-storage.ts';
import type { EvaluationSetup } from '../evaluate/setup.ts';
import { formatMoment } from '../format.ts';
import type { RowFile } from '../rows/row-file.ts';
import { session } from '../session.ts';
import type { Draft } from './draft.ts';
import type { KeptOutcome } from './use-runs.ts';

/** That of the playground, and of the pages Batch and Evaluate. */
const DATABASE = 'tds-playground';
const SWITCHED_OFF_AS = 'tds-keeps-work';
/** As many comparisons are kept for each person and organization. */
export const KEPT_RUNS_MAX = 50;

/** The request that is being written, with what was chosen beside it. */
export interface KeptDraft {
  readonly draft: Draft;
  /** The request as text, where it is edited as JSON. */
  readonly json: string | null;
  /** False for an example as it stands. */
  readonly is_dirty: boolean;
  readonly example: string | null;
  readonly model: string;
  /** Absent in drafts that were kept before it was; empty for none. */
  readonly compared_model?: string;
  readonly modes: string;
  readonly project_id: string;
  readonly key_id: string | null;
  /** The request that would be sent, in JSON, by which a draft of another tab is known. Absent in drafts of before. */
  readonly request?: string;
  /** The time at which the tab that wrote it was opened. Absent in drafts of before. */
  readonly tab_opened_at_ms?: number;
}

/** A comparison that was asked, and its answers. */
export interface KeptRun {
  /** Given when it is stored; a later one is larger. */
  readonly id?: number;
  readonly scope: string;
  readonly at_ms: number;
  /** In JSON: an object of JavaScript would not keep the order of all options. */
  readonly body: string;
  readonly outcomes: readonly KeptOutcome[];
}

/** A request that somebody gave a name. */
export interface SavedRequest {
  readonly scope: string;
  readonly name: string;
  readonly at_ms: number;
  /** In JSON, as of `KeptRun`. */
  readonly body: string;
}

/** All stores of the browser's database. Those of batches and evaluations are written by `rows/kept-rows.ts`. */
export interface Stores extends DBSchema {
  drafts: { key: string; value: KeptDraft };
  runs: { key: number; value: KeptRun; indexes: { scope: string } };
  requests: { key: [scope: string, name: string]; value: SavedRequest; indexes: { scope: string } };
  batches: { key: string; value: BatchSetup };
  evaluations: { key: string; value: EvaluationSetup };
  batch_rows: { key: string; value: RowFile };
  batch_answers: { key: [scope: string, row: number]; value: string };
}

/** All that the browser keeps of one person's work in one organization. */
export interface KeptWork {
  readonly draft: KeptDraft | undefined;
  /** Newest first. */
  readonly runs: readonly KeptRun[];
  /** By name. */
  readonly requests: readonly SavedRequest[];
}

const NOTHING: KeptWork = { draft: undefined, runs: [], requests: [] };

/** True while this browser keeps what is written and answered in the playground. */
export const keeps_work = signal(storedSwitch());

// Another page of this browser switched it: what was deleted must not be written again.
window.addEventListener('storage', ({ key }) => {
  if (key === SWITCHED_OFF_AS || key === null) keeps_work.value = storedSwitch();
});

let opened: Promise<IDBPDatabase<Stores>> | undefined;

function database(): Promise<IDBPDatabase<Stores>> {
  opened ??= openDB<Stores>(DATABASE, 3, {
    upgrade: (created, earlier_version) => {
      if (earlier_version === 0) {
        created.createObjectStore('drafts');
        const runs = created.createObjectStore('runs', { keyPath: 'id', autoIncrement: true });
        runs.createIndex('scope', 'scope');
        const requests = created.createObjectStore('requests', { keyPath: ['scope', 'name'] });
        requests.createIndex('scope', 'scope');
      }
      if (earlier_version < 2) {
        created.createObjectStore('batches');
        created.createObjectStore('batch_rows');
        created.createObjectStore('batch_answers');
      }
      created.createObjectStore('evaluations');
    },
    // A page of a later version needs it.
    blocking: (_, __, event) => {
      if (event.target instanceof IDBDatabase) event.target.close();
      opened = undefined;
    },
  });
  return opened;
}

/** Returns the scope of the reader's work in an organization. */
export function scopeOf(organization_id: string): string {
  const user_id = session.value.state === 'signed_in' ? session.value.user.id : '';
  return `${user_id} ${organization_id}`;
}

/**
 * Reads all that the browser keeps under a scope, which names a person and an organization. It is nothing where that is
 * switched off, or where the browser stores nothing.
 */
export async function readKeptWork(scope: string): Promise<KeptWork> {
  const read = await inDatabase(async (stored) => {
    const [draft, runs, requests] = await Promise.all([
      stored.get('drafts', scope),
      stored.getAllFromIndex('runs', 'scope', scope),
      stored.getAllFromIndex('requests', 'scope', scope),
    ]);
    return { draft, runs: runs.toReversed(), requests };
  });
  known_requests.set(scope, read?.draft?.request);
  return read ?? NOTHING;
}

interface DraftWrite {
  readonly scope: string;
  readonly draft: KeptDraft;
  /** Called with what somebody wrote in another tab and this draft has replaced, as it is saved now. */
  readonly onReplaced: (saved: SavedRequest) => void;
}

/** The requests of the drafts that this tab read or wrote last, by their scopes. */
const known_requests = new Map<string, string | undefined>();
let latest: DraftWrite | undefined;
let is_writing = false;

/** Keeps the draft. While one is being written, only the newest of those that follow is. Never rejects. */
export async function keepDraft(write: DraftWrite): Promise<void> {
  latest = write;
  if (is_writing) return;
  is_writing = true;
  while (latest !== undefined && keeps_work.value) {
    const { scope, draft, onReplaced } = latest;
    latest = undefined;
    const written = await inDatabase((stored) => exchangeDraft(stored, scope, draft));
    if (written === null) continue;
    known_requests.set(scope, draft.request);
    if (written.replaced !== null) onReplaced(written.replaced);
  }
  is_writing = false;
}

/** Puts a draft in place of the stored one, and saves that one where another tab wrote it: both, or neither. */
async function exchangeDraft(stored: IDBPDatabase<Stores>, scope: string, draft: KeptDraft) {
  const within = stored.transaction(['drafts', 'requests'], 'readwrite');
  const drafts = within.objectStore('drafts');
  const earlier = await drafts.get(scope);
  const is_known = [known_requests.get(scope), draft.request].includes(earlier?.request);
  const replaced = earlier?.is_dirty === true && !is_known ? savedDraft(scope, earlier) : null;
  await Promise.all([
    // First, because a transaction whose first write cannot be asked for writes nothing.
    replaced === null ? undefined : within.objectStore('requests').put(replaced),
    drafts.put(draft, scope),
    within.done,
  ]);
  return { replaced };
}

/** Returns a draft as a saved request, once for each tab: it is named by the time at which that was opened. */
function savedDraft(scope: string, { request = '', tab_opened_at_ms }: KeptDraft): SavedRequest {
  const at_ms = Date.now();
  return { scope, name: draftName(tab_opened_at_ms ?? at_ms), at_ms, body: request };
}

/** Returns the name of a draft of that time, to the millisecond: a browser may open many tabs in a second. */
export function draftName(at_ms: number): string {
  return `Draft of ${formatMoment(at_ms)}.${String(Math.floor(at_ms) % 1_000).padStart(3, '0')}`;
}

/** Keeps a comparison, and drops those of its scope that are too many. Never rejects. */
export async function keepRun(run: KeptRun): Promise<void> {
  await inDatabase(async (stored) => {
    await stored.add('runs', run);
    const ids = await stored.getAllKeysFromIndex('runs', 'scope', run.scope);
    for (const id of ids.slice(0, -KEPT_RUNS_MAX)) await stored.delete('runs', id);
  });
}

/** Keeps a request under its name, in place of an earlier one of that name. Resolves with false where nothing is kept. */
export async function saveRequest(request: SavedRequest): Promise<boolean> {
  return (await inDatabase((stored) => stored.put('requests', request))) !== null;
}

/** Forgets a saved request. Never rejects. */
export async function removeRequest({ scope, name }: SavedRequest): Promise<void> {
  await inDatabase((stored) => stored.delete('requests', [scope, name]));
}

/** Switches keeping on, or off: then everything that was kept in this browser is deleted. */
export async function keepWork(is_on: boolean): Promise<void> {
  keeps_work.value = is_on;
  store(SWITCHED_OFF_AS, is_on ? null : 'off');
  if (is_on) return;
  await attempt((stored) => Promise.all([...stored.objectStoreNames].map((name) => stored.clear(name))));
}

/**
 * Reads or writes what is kept. Resolves with null where nothing is kept, or the browser stores nothing, or no more: that
 * must not stop the work.
 */
export async function inDatabase<T>(act: (stored: IDBPDatabase<Stores>) => Promise<T>): Promise<T | null> {
  return keeps_work.value ? await attempt(act) : null;
}

async function attempt<T>(act: (stored: IDBPDatabase<Stores>) => Promise<T>): Promise<T | null> {
  try {
    return await act(await database());
  } catch {
    opened = undefined;
    return null;
  }
}

function storedSwitch(): boolean {
  try {
    return localStorage.getItem(SWITCHED_OFF_AS) !== 'off';
  } catch {
    return false;
  }
}
