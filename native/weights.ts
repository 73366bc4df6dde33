import { createHash } from 'node:crypto';
import { open, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../src/errors/system-error-code.ts';
import { IS_UNPACKED, projectFile } from '../src/files/project-root.ts';
import { WeightsError } from './errors.ts';

/** The first GGUF part of the weights that come with the service. */
export const EMBEDDED_WEIGHTS = projectFile('native/models/decision-1/decision-1-00001-of-00002.gguf');

const CHECKSUMS = 'SHA256SUMS';
const READ_BYTES = 1 << 20;
const GGUF_MAGIC = 0x47475546;
const GGUF_VERSIONS: readonly number[] = [2, 3];
const GGUF_HEADER_BYTES = 24;
const SPLIT_NAME = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/** Weights whose files are complete, and match the checksums of `SHA256SUMS` if there is one. */
export interface Weights {
  /** The path of the first part, from which llama.cpp finds the others. */
  readonly first: string;
  readonly parts: readonly string[];
  /** SHA-256 over the parts in order, in hex. */
  readonly sha256: string;
  /** Device, inode, size and times of every file when it was read. It changes when a file is replaced or written to. */
  readonly file_identity: string;
}

/**
 * Returns the files of a path: the file itself, or every part of a split GGUF. Touches no file. Throws `WeightsError`
 * if the path is a later part.
 */
export function weightsParts(path: string): readonly string[] {
  const match = SPLIT_NAME.exec(basename(path));
  if (match === null) return [path];
  const [, stem = '', part = '', count = ''] = match;
  const first = `${stem}-00001-of-${count}.gguf`;
  if (Number(part) !== 1) {
    throw new WeightsError(
      `${path} is part ${Number(part)} of ${Number(count)}: give the first part, ${first}.`,
    );
  }
  return Array.from({ length: Number(count) }, (_, index) =>
    join(dirname(path), `${stem}-${String(index + 1).padStart(5, '0')}-of-${count}.gguf`),
  );
}

/** Returns the advice on a wrong file: restore an embedded one, copy any other again. */
function remedy(path: string): string {
  if (dirname(path) !== dirname(EMBEDDED_WEIGHTS)) return 'copy or download it again';
  return IS_UNPACKED
    ? 'remove its folder, and the next start unpacks it again'
    : 'restore it from the repository (git checkout -- native/models)';
}

const MORE_DESCRIPTORS = 'raise the limit of file descriptors ("ulimit -n")';
const UNREADABLE_ADVICE: ReadonlyMap<string, string> = new Map([
  ['EMFILE', MORE_DESCRIPTORS],
  ['ENFILE', MORE_DESCRIPTORS],
  ['EISDIR', 'it is a folder, so give a file in it, of several parts the first'],
]);

function unreadable(path: string, error: unknown): WeightsError {
  const code = systemErrorCode(error);
  if (code === 'ENOENT') {
    return new WeightsError(`The weights file ${path} is missing: check the path, or ${remedy(path)}.`);
  }
  const advice = UNREADABLE_ADVICE.get(code ?? '') ?? 'make it readable for this user';
  return new WeightsError(`The weights file ${path} cannot be read (${code ?? String(error)}): ${advice}.`);
}

/** Reads the checksums beside the weights, by file name; undefined for none. Embedded weights must have them. */
async function readChecksums(first: string): Promise<ReadonlyMap<string, string> | undefined> {
  const path = join(dirname(first), CHECKSUMS);
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw unreadable(path, error);
    if (dirname(first) === dirname(EMBEDDED_WEIGHTS)) throw unreadable(path, error);
    return undefined;
  }
  const lines = content.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gim);
  return new Map(Array.from(lines, ([, digest = '', name = '']) => [name.trim(), digest.toLowerCase()]));
}

/** Returns true if a file begins with GGUF's magic and a version that llama.cpp reads. */
function startsAsGguf(piece: Uint8Array): boolean {
  if (piece.byteLength < GGUF_HEADER_BYTES) return false;
  const view = new DataView(piece.buffer, piece.byteOffset);
  return view.getUint32(0) === GGUF_MAGIC && GGUF_VERSIONS.includes(view.getUint32(4, true));
}

/** Passes a file to `use` piece by piece. Throws `WeightsError` for a file that cannot be read or is not GGUF. */
async function readWeights(path: string, use: (piece: Uint8Array) => void): Promise<void> {
  try {
    await using file = await open(path, 'r');
    const buffer = new Uint8Array(READ_BYTES);
    for (let start = 0; ; ) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, start);
      const piece = buffer.subarray(0, bytesRead);
      if (start === 0 && !startsAsGguf(piece)) {
        throw new WeightsError(
          `${path} is not a GGUF file: give a model in GGUF format, or ${remedy(path)}.`,
        );
      }
      if (bytesRead === 0) return;
      use(piece);
      start += bytesRead;
    }
  } catch (error) {
    throw error instanceof WeightsError ? error : unreadable(path, error);
  }
}

/** Returns the bytes of all parts of the weights at `path`. Throws `WeightsError` if one cannot be read. */
export async function weightsBytes(path: string): Promise<number> {
  const sizes = weightsParts(path).map(async (part) => {
    try {
      return (await stat(part)).size;
    } catch (error) {
      throw unreadable(part, error);
    }
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Returns device, inode, size and times of the files as one text. Throws `WeightsError` if one cannot be read. */
async function fileIdentity(parts: readonly string[]): Promise<string> {
  const identities = parts.map(async (part) => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(part, { bigint: true });
      return [dev, ino, size, mtimeNs, ctimeNs].join(':');
    } catch (error) {
      throw unreadable(part, error);
    }
  });
  return (await Promise.all(identities)).join(' ');
}

/**
 * Resolves if the files still have the verified content. Reads them again only after one was replaced or written.
 * Rejects with `WeightsError` for other content.
 */
export async function requireUnchanged(weights: Weights): Promise<void> {
  if ((await fileIdentity(weights.parts)) === weights.file_identity) return;
  const { sha256 } = await verifyWeights(weights.first);
  if (sha256 === weights.sha256) return;
  throw new WeightsError(
    `The weights ${weights.first} are others than when they were loaded: reload the model ("tds model reload") to serve them.`,
  );
}

/**
 * Reads every part of the weights at `path` once. Throws `WeightsError` when a part is missing, is not GGUF, or differs
 * from its checksum in `SHA256SUMS`. The embedded weights must have a checksum for each part.
 */
export async function verifyWeights(path: string): Promise<Weights> {
  const parts = weightsParts(path);
  const checksums = await readChecksums(path);
  const file_identity = await fileIdentity(parts);
  const whole = createHash('sha256');
  for (const part of parts) {
    const hash = createHash('sha256');
    await readWeights(part, (piece) => {
      hash.update(piece);
      whole.update(piece);
    });
    const expected = checksums?.get(basename(part));
    if (expected !== undefined && expected !== hash.digest('hex')) {
      throw new WeightsError(
        `The weights file ${part} is cut or corrupt (its SHA-256 is not the one in ${CHECKSUMS}): ${remedy(part)}.`,
      );
    }
    if (expected === undefined && dirname(part) === dirname(EMBEDDED_WEIGHTS)) {
      throw new WeightsError(`${CHECKSUMS} has no line for ${part}: ${remedy(part)}.`);
    }
  }
  return { first: path, parts, sha256: whole.digest('hex'), file_identity };
}
