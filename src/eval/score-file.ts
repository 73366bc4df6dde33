import { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { type Static, Type } from '@sinclair/typebox';
import { errorMessage } from '../errors/error-message.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OWNER_ONLY_FILE } from '../files/file-permissions.ts';
import { checkedJson } from '../json/checked-json.ts';
import { MODES } from '../questions/question.ts';
import { PROBES } from './probes.ts';

/** The facts that the scores of a file depend on, besides the requests themselves. */
const Header = Type.Object({
  weights_sha256: Type.String(),
  profile: Type.String(),
  mode: Type.Union(MODES.map((mode) => Type.Literal(mode))),
  context_tokens: Type.Integer(),
});
export type ScoreFileHeader = Static<typeof Header>;

const Variant = Type.Union([Type.Literal('original'), ...PROBES.map((probe) => Type.Literal(probe))]);
export type Variant = Static<typeof Variant>;

/**
 * The model's uncalibrated scores for one request; a record and its questions are stored only as a digest.
 */
const Entry = Type.Object({
  digest: Type.String(),
  variant: Variant,
  /** One list for each question; null when the model refused the request. */
  scores: Type.Union([Type.Array(Type.Array(Type.Number())), Type.Null()]),
  /** For each question its hidden states, as of `storedStates`; null where they were not needed. */
  states: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Null()]))),
  input_tokens: Type.Integer({ minimum: 0 }),
  latency_ms: Type.Number({ minimum: 0 }),
});
export type ScoreEntry = Static<typeof Entry>;

/** The scores cannot be stored or continued. The message is one sentence with advice. */
export class ScoreFileError extends Error {
  override readonly name = 'ScoreFileError';
}

/**
 * Scores on disk, a JSON line each. An interrupted run continues from them, and one run of the model serves
 * `tds eval` and `tds calibrate`. An incomplete line of a process that died is dropped.
 */
export class ScoreFile {
  readonly #entries = new Map<string, ScoreEntry>();
  readonly #descriptor: number;

  private constructor(
    readonly path: string,
    entries: readonly ScoreEntry[],
  ) {
    for (const entry of entries) this.#entries.set(keyOf(entry), entry);
    this.#descriptor = openSync(path, 'a');
  }

  /** Opens or creates the file. Throws `ScoreFileError` when it belongs to another model, profile or mode. */
  static open(path: string, header: ScoreFileHeader): ScoreFile {
    try {
      const content = readIfThere(path);
      if (content === undefined || !content.includes('\n')) {
        truncateOrCreate(path);
        const file = new ScoreFile(path, []);
        appendFileSync(file.#descriptor, `${JSON.stringify(header)}\n`);
        return file;
      }
      const whole = content.slice(0, content.lastIndexOf('\n') + 1);
      if (whole.length < content.length) truncateSync(path, Buffer.byteLength(whole));
      const [first = '', ...lines] = whole.trimEnd().split('\n');
      if (!sameHeader(checkedJson(Header, first), header)) {
        throw new ScoreFileError(
          `${path} has the scores of another model, profile or mode: name another folder with --output, or remove it.`,
        );
      }
      return new ScoreFile(
        path,
        lines.map((line) => entryOf(line, path)),
      );
    } catch (error) {
      if (error instanceof ScoreFileError) throw error;
      const reason = errorMessage(error);
      throw new ScoreFileError(`${path} cannot be used (${reason}): name another folder with --output.`, {
        cause: error,
      });
    }
  }

  get(digest: string, variant: Variant): ScoreEntry | undefined {
    return this.#entries.get(keyOf({ digest, variant }));
  }

  /** Stores an entry; it is in the file on return. Throws `ScoreFileError`. */
  add(entry: ScoreEntry): void {
    try {
      appendFileSync(this.#descriptor, `${JSON.stringify(entry)}\n`);
    } catch (error) {
      throw new ScoreFileError(`${this.path} cannot be written: free some space and run again to go on.`, {
        cause: error,
      });
    }
    this.#entries.set(keyOf(entry), entry);
  }

  close(): void {
    fsyncSync(this.#descriptor);
    closeSync(this.#descriptor);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function keyOf({ digest, variant }: Pick<ScoreEntry, 'digest' | 'variant'>): string {
  return `${digest} ${variant}`;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function truncateOrCreate(path: string): void {
  closeSync(openSync(path, 'w', OWNER_ONLY_FILE));
}

function sameHeader(value: ScoreFileHeader | undefined, header: ScoreFileHeader): boolean {
  return (
    value !== undefined &&
    value.weights_sha256 === header.weights_sha256 &&
    value.profile === header.profile &&
    value.mode === header.mode &&
    value.context_tokens === header.context_tokens
  );
}

function entryOf(line: string, path: string): ScoreEntry {
  const value = checkedJson(Entry, line);
  if (value === undefined) {
    throw new ScoreFileError(`${path} is not a file of scores: name another folder with --output.`);
  }
  return value;
}
