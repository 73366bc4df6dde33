import { type FileHandle, open, rename } from 'node:fs/promises';
import { systemErrorCode } from '../errors/system-error-code.ts';
import type { TextSink } from './standard-output.ts';

/** The largest size of a file, and the number of full ones that are kept. */
export interface Rotation {
  readonly bytes_max: number;
  readonly keep: number;
}

/** The owner writes it, and the group may read it, for log collectors. It contains metadata only. */
const LOG_FILE_MODE = 0o640;

interface OpenFile {
  readonly handle: FileHandle;
  bytes: number;
}

/**
 * A file of lines. Before it would exceed its size it becomes `<path>.1`, the previous one `<path>.2`, and so
 * on; the oldest is overwritten. Operations run one after the other, outside of the event loop.
 */
export class LogFile implements TextSink {
  #last: Promise<unknown> = Promise.resolve();
  #file: OpenFile | null;

  private constructor(
    private readonly path: string,
    private readonly rotation: Rotation,
    file: OpenFile,
  ) {
    this.#file = file;
  }

  /** Opens the file to append. Rejects with the system's error. */
  static async open(path: string, rotation: Rotation): Promise<LogFile> {
    return new LogFile(path, rotation, await openToAppend(path));
  }

  /** Appends the text; `done` gets the error of a failure. The next write tries to open the file again. */
  write(text: string, done: (error?: Error | null) => void): void {
    this.#next(() => this.#append(text)).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : new Error('the log cannot be written')),
    );
  }

  /** Opens a new file of the path, after another program has moved the old one away. Never rejects. */
  async reopen(): Promise<void> {
    await this.#next(() => this.#close()).catch(() => {
      // Nothing is lost: the next write opens the file, or reports that it cannot.
    });
  }

  /** Closes the file after all earlier writes. */
  close(): Promise<void> {
    return this.#next(() => this.#close());
  }

  #next<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#last.then(operation);
    this.#last = result.catch(() => {});
    return result;
  }

  async #append(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text);
    this.#file ??= await openToAppend(this.path);
    if (this.#file.bytes > 0 && this.#file.bytes + bytes > this.rotation.bytes_max) {
      await this.#close();
      await this.#moveAside();
      this.#file = await openToAppend(this.path);
    }
    try {
      await this.#file.handle.appendFile(text);
      this.#file.bytes += bytes;
    } catch (error) {
      // The line that was cut off would garble the next one.
      await this.#cutTo(this.#file);
      await this.#close();
      throw error;
    }
  }

  /** Takes back what a failed write left. Another program may have emptied the file, which is not to grow again. */
  async #cutTo({ handle, bytes }: OpenFile): Promise<void> {
    try {
      if ((await handle.stat()).size > bytes) await handle.truncate(bytes);
    } catch {
      // The caller gets the error of the write, whose cause is the same.
    }
  }

  /** Makes room for a new file by renaming each full one to the next number. */
  async #moveAside(): Promise<void> {
    const { keep } = this.rotation;
    for (let place = keep; place >= 1; place -= 1) {
      await rename(place === 1 ? this.path : `${this.path}.${place - 1}`, `${this.path}.${place}`).catch(
        unlessMissing,
      );
    }
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.handle.close();
  }
}

async function openToAppend(path: string): Promise<OpenFile> {
  const handle = await open(path, 'a', LOG_FILE_MODE);
  try {
    return { handle, bytes: (await handle.stat()).size };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function unlessMissing(error: unknown): void {
  if (systemErrorCode(error) === 'ENOENT') return;
  throw error;
}
