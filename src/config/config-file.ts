import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OTHERS_WRITE, ROOT_USER_ID } from '../files/file-permissions.ts';
import { ConfigurationRefused } from './configuration-refused.ts';
import type { Setting } from './setting.ts';
import { SETTING_NAMES, type SettingName, settingOf } from './settings.ts';
import { parseToml, type TomlEntry, TomlError } from './toml.ts';

/** The file that is read by default, if it exists. */
export const DEFAULT_CONFIG_FILE = '/etc/tds.toml';
/** Stands in place of a path for no file. */
const NO_CONFIG_FILE = 'none';

/**
 * The permission bits of everybody. The group's bits are allowed, because services usually read their secrets
 * from a file of root by their group.
 */
const EVERYBODY_READS = 0o004;

/** A checked file of settings. */
export interface ConfigFile {
  readonly path: string;
  readonly values: ReadonlyMap<SettingName, { readonly text: string; readonly line: number }>;
  /** Sentences for the operator; the file is used all the same. */
  readonly warnings: readonly string[];
}

interface Content {
  readonly text: string;
  readonly mode: number;
}

/**
 * Reads the file of settings: the named one, or the default one if it exists; null for none. Throws
 * `ConfigurationRefused` with a sentence that names the line.
 */
export function readConfigFile(
  named: string | undefined,
  default_path: string = DEFAULT_CONFIG_FILE,
): ConfigFile | null {
  if (named === NO_CONFIG_FILE) return null;
  const path = named ?? default_path;
  const content = read(path);
  if (content !== null) return checked(path, content);
  if (named === undefined) return null;
  throw new ConfigurationRefused(`There is no file ${path}: name another one with --config.`);
}

/** Reads a file; null where there is none. */
function read(path: string): Content | null {
  let descriptor: number;
  try {
    // Non-blocking, because the path may be a pipe without a writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = systemErrorCode(error) ?? error;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new ConfigurationRefused(
      `${path} cannot be read (${code}): let this user read it, or name another file with --config.`,
      { cause: error },
    );
  }
  try {
    const status = fstatSync(descriptor);
    if (!status.isFile())
      throw new ConfigurationRefused(`${path} is no file: name another one with --config.`);
    // Systems without users have no such modes.
    const user_id = process.getuid?.();
    const untrusted = user_id === undefined ? null : whyUntrusted(path, status, user_id);
    if (untrusted !== null) throw new ConfigurationRefused(untrusted);
    return { text: decoded(path, readFileSync(descriptor)), mode: status.mode };
  } finally {
    closeSync(descriptor);
  }
}

function decoded(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ConfigurationRefused(`${path} is no text in UTF-8.`, { cause: error });
  }
}

/**
 * Returns the reason why that user must not trust the file, or null. Only that user and root may be able to
 * write it, because its content decides what the service does.
 */
export function whyUntrusted(
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  user_id: number,
): string | null {
  if ((mode & OTHERS_WRITE) !== 0) {
    const before = (mode & 0o777).toString(8);
    return `${path} can be written by other users (mode ${before}): run "chmod go-w ${path}" after a look at what it says.`;
  }
  const is_own = uid === user_id || uid === ROOT_USER_ID || user_id === ROOT_USER_ID;
  return is_own ? null : `${path} belongs to another user: it must be this user's, or root's.`;
}

const NAMES_BY_KEY: ReadonlyMap<string, SettingName> = new Map(
  SETTING_NAMES.map((name) => [settingOf(name).key, name]),
);

function checked(path: string, { text, mode }: Content): ConfigFile {
  const refuse = (line: number, sentence: string): never => {
    throw new ConfigurationRefused(`Line ${line} of ${path}: ${sentence}`);
  };
  const { sections, entries } = parsed(text, refuse);
  for (const [section, line] of sections) {
    const is_known = SETTING_NAMES.some((name) => settingOf(name).key.startsWith(`${section}.`));
    if (!is_known)
      refuse(line, `there is no section [${section}]; "tds config --example" shows all that there are.`);
  }
  const values = new Map<SettingName, { readonly text: string; readonly line: number }>();
  for (const entry of entries) {
    const key = `${entry.section}.${entry.name}`;
    const name = NAMES_BY_KEY.get(key);
    if (name === undefined)
      return refuse(
        entry.line,
        `there is no setting ${key}; "tds config --example" shows all that there are.`,
      );
    const wrong = wrongEntry(settingOf(name), entry);
    if (wrong !== null) refuse(entry.line, `${key} ${wrong}`);
    values.set(name, { text: entry.text, line: entry.line });
  }
  const has_secret = [...values.keys()].some((name) => settingOf(name).is_secret);
  const warnings =
    has_secret && process.getuid !== undefined && (mode & EVERYBODY_READS) !== 0
      ? [`${path} holds secrets that every user can read: run "chmod o-r ${path}".`]
      : [];
  return { path, values, warnings };
}

function parsed(text: string, refuse: (line: number, sentence: string) => never) {
  try {
    return parseToml(text);
  } catch (error) {
    if (error instanceof TomlError) return refuse(error.line, `${error.message}.`);
    throw error;
  }
}

const KIND_ADVICE = {
  string: 'must be a text in quotes.',
  integer: 'must be a whole number, without quotes.',
  boolean: 'must be true or false, without quotes.',
} as const satisfies Record<TomlEntry['kind'], string>;

/** Returns the error of a value, or null. */
function wrongEntry(setting: Setting, { kind, text }: TomlEntry): string | null {
  const is_word = kind === 'string' && text === setting.kind.word;
  if (kind !== setting.kind.toml && !is_word) return KIND_ADVICE[setting.kind.toml];
  return wrongText(setting, text);
}

/** Returns the reason why a text is not a value of the setting, or null. Never quotes a secret. */
export function wrongText({ kind, is_secret, public_text }: Setting, text: string): string | null {
  try {
    kind.parse(text);
    return null;
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const may_be_quoted = !is_secret && public_text === undefined;
    return `cannot be ${may_be_quoted ? JSON.stringify(text) : 'this'}. ${error.message}`;
  }
}
