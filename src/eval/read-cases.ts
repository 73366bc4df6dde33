import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { XzReadableStream } from 'xz-decompress';
import { errorMessage } from '../errors/error-message.ts';
import { allLines } from '../json/text-lines.ts';
import { CasesError, type EvalCase, parseCase } from './cases.ts';

/** A parsed cases file. */
export interface CasesFile {
  /** SHA-256 of its lines, uncompressed, in hex. */
  readonly sha256: string;
  readonly cases: readonly EvalCase[];
}

/**
 * Reads the records of a cases file: JSON lines, compressed where the name ends in `.gz` or `.xz`. Throws
 * `CasesError` when the file is unreadable, truncated, not UTF-8 or empty, or has a line that is not a record.
 */
export async function readCases(path: string): Promise<CasesFile> {
  const hash = createHash('sha256');
  const cases: EvalCase[] = [];
  let line_number = 0;
  const take = (line: string) => {
    line_number += 1;
    if (line.trim() === '') return;
    hash.update(line).update('\n');
    cases.push(parseCase(line, line_number));
  };
  const notUtf8 = (cause: unknown) =>
    new CasesError(`The cases ${path} are not UTF-8 after line ${line_number}: save them as UTF-8.`, {
      cause,
    });
  try {
    for await (const line of allLines(decompressed(path), notUtf8)) take(line);
  } catch (error) {
    if (error instanceof CasesError) throw error;
    const reason = errorMessage(error);
    throw new CasesError(`The cases ${path} cannot be read (${reason}): give a complete file.`, {
      cause: error,
    });
  }
  if (cases.length === 0) throw new CasesError(`The cases ${path} have no record.`);
  return { sha256: hash.digest('hex'), cases };
}

async function* decompressed(path: string): AsyncGenerator<Uint8Array> {
  if (path.endsWith('.xz')) {
    const reader = new XzReadableStream(Bun.file(path).stream()).getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
    return;
  }
  const file = createReadStream(path);
  if (!path.endsWith('.gz')) {
    yield* bytes(file);
    return;
  }
  // A failure to read must end the pipe too.
  const plain = createGunzip();
  file.on('error', (error) => plain.destroy(error));
  yield* bytes(file.pipe(plain));
}

async function* bytes(stream: Readable): AsyncGenerator<Uint8Array> {
  for await (const piece of stream) if (piece instanceof Uint8Array) yield piece;
}
