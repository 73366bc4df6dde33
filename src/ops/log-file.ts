import { type FileHandle, open, rename } from 'node:fs/promises';
import { systemErrorCode } from '../system-error-code.ts';
import type { TextSink } from './standard-output.ts';

/** How large a file may grow, and how many full ones are kept beside it. */
export interface Rotation {
  readonly bytes_max: number;
  readonly keep: number;
}

/** Its owner writes it, its group may read it: whatever collects logs. It holds metadata only. */
const LOG_FILE_MODE = 0o640;

interface OpenFile {
  readonly handle: FileHandle;
  bytes: number;
}

/**
 * A file of lines. Before it would grow beyond its size it becomes `<path>.1`, the one before that `<path>.2`, and so
 * on; the oldest is written over. Every operation waits for the one before and happens beside the event loop.
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

  /** Opens the file, behind what it holds. Rejects with what the system says. */
  static async open(path: string, rotation: Rotation): Promise<LogFile> {
    return new LogFile(path, rotation, await openToAppend(path));
  }

  /** Appends the text; `done` is told whether that failed. The next write tries to open the file again. */
  write(text: string, done: (error?: Error | null) => void): void {
    this.#next(() => this.#append(text)).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : new Error('the log cannot be written')),
    );
  }

  /** Goes on in a file of the path, after another program has moved the one before away. Never rejects. */
  async reopen(): Promise<void> {
    await this.#next(() => this.#close()).catch(() => {
      // Nothing is lost: the next write opens the file, or says that it cannot.
    });
  }

  /** Closes the file once what was written before is in it. */
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
      await this.#close();
      throw error;
    }
  }

  /** Makes room for a new file: each full one goes one place on. */
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
