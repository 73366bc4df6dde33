import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { errorMessage } from '../errors/error-message.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { ModelUnavailable } from '../served-models/model-answerer.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** The credentials for a member. Never logged. */
export interface Credentials {
  /** The bearer token; null for none. */
  readonly token: string | null;
  /** Certificates (PEM) that are trusted instead of the system's; null for the system's. */
  readonly certificates: string | null;
}

/** The texts that a header can carry. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/** The last content of the files of one member, or of several. */
interface LastRead {
  credentials: Credentials | undefined;
  /** The reported reason why the files cannot be read. */
  unreadable: string | undefined;
}

/** The files of a pool: one of certificates, and tokens of its members. */
export class CredentialFiles {
  /** The last content by the path of the token. */
  readonly #last = new Map<string | null, LastRead>();

  constructor(
    private readonly ca_file: string | null,
    private readonly onProblem: (error: unknown) => void,
  ) {}

  /**
   * Reads the present files; null for no token. A failure is reported once until they can be read, and the
   * last content stays in use. Rejects with `ModelUnavailable` where they could never be read.
   */
  async read(token_file: string | null): Promise<Credentials> {
    const last = this.#last.get(token_file) ?? { credentials: undefined, unreadable: undefined };
    this.#last.set(token_file, last);
    try {
      last.credentials = await readCredentials(token_file, this.ca_file);
      last.unreadable = undefined;
      return last.credentials;
    } catch (error) {
      const message = errorMessage(error);
      if (message !== last.unreadable) this.onProblem(error);
      last.unreadable = message;
      if (last.credentials === undefined) throw new ModelUnavailable(message, { cause: error });
      return last.credentials;
    }
  }
}

/** Rejects with `UpstreamFailed`, which names the file. */
async function readCredentials(token_file: string | null, ca_file: string | null): Promise<Credentials> {
  const token = token_file === null ? null : (await readText(token_file)).trim();
  if (token !== null && !TOKEN.test(token)) {
    throw new UpstreamFailed('refused', `${token_file} must hold a token: one line of visible ASCII.`);
  }
  return { token, certificates: ca_file === null ? null : await readCertificates(ca_file) };
}

/** Returns the text of a file of certificates. A connection with another text fails without a reason. */
async function readCertificates(path: string): Promise<string> {
  const text = await readText(path);
  const blocks = text.split('-----BEGIN ').slice(1);
  try {
    // Only the first certificate is parsed, and a file is also cut after it while it is replaced.
    if (!blocks.every((block) => /-----END [A-Z0-9 ]+-----/.test(block))) throw new Error('It is cut.');
    void new X509Certificate(text);
    return text;
  } catch {
    throw new UpstreamFailed('refused', `${path} must hold certificates (PEM).`);
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UpstreamFailed('refused', `${path} cannot be read (${systemErrorCode(error) ?? 'no code'}).`);
  }
}
