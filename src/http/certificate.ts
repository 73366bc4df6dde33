import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContext } from 'node:tls';
import { systemErrorCode } from '../system-error-code.ts';

/** Where the PEM files of a certificate (with its chain) and of its private key are. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate that cannot be served, with one sentence that says why. */
export class CertificateRefused extends Error {
  override readonly name = 'CertificateRefused';
}

/** Is told whether changed files can be served. */
export interface CertificateObserver {
  readonly onReload: () => void;
  /** The new files cannot be served; the certificate before stays. */
  readonly onFailure: (error: CertificateRefused) => void;
}

interface PemPair {
  readonly certificate: string;
  readonly key: string;
}

/** How often the files are read. Reading sees what watching misses, such as a link further up that was moved. */
const LOOK_MS = 5_000;

/**
 * The certificate in two files, read again when they change. Connections that are open keep the one that they began
 * with.
 */
export class Certificate {
  #files: CertificateFiles;
  /** What was read last, whether or not it can be served. */
  #read: PemPair;
  #context: SecureContext;
  #unreadable: string | undefined;
  #timer: Timer | undefined;

  private constructor(files: CertificateFiles, read: PemPair) {
    this.#files = files;
    this.#read = read;
    this.#context = contextOf(files, read);
  }

  /** Reads the files. Rejects with `CertificateRefused`. */
  static async open(files: CertificateFiles): Promise<Certificate> {
    return new Certificate(files, await readPair(files));
  }

  /** For connections that begin now. */
  get context(): SecureContext {
    return this.#context;
  }

  /** Begins to look for changes. The same failure is told once. */
  watch(observer: CertificateObserver, look_ms: number = LOOK_MS): void {
    this.#timer = setInterval(() => void this.#look(observer), look_ms);
    this.#timer.unref();
  }

  /** Reads these files from now on. Those before stay where it rejects with `CertificateRefused`. */
  async use(files: CertificateFiles): Promise<void> {
    const read = await readPair(files);
    this.#context = contextOf(files, read);
    this.#files = files;
    this.#read = read;
    this.#unreadable = undefined;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(observer: CertificateObserver): Promise<void> {
    try {
      const files = this.#files;
      const read = await readPair(files);
      if (files !== this.#files) return;
      this.#unreadable = undefined;
      if (read.certificate === this.#read.certificate && read.key === this.#read.key) return;
      this.#read = read;
      this.#context = contextOf(files, read);
      observer.onReload();
    } catch (error) {
      if (!(error instanceof CertificateRefused)) throw error;
      if (error.message === this.#unreadable) return;
      this.#unreadable = error.message;
      observer.onFailure(error);
    }
  }
}

async function readPair({ certificate, key }: CertificateFiles): Promise<PemPair> {
  const [certificate_pem, key_pem] = await Promise.all([readPem(certificate), readPem(key)]);
  return { certificate: certificate_pem, key: key_pem };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = systemErrorCode(error) ?? error;
    throw new CertificateRefused(`${path} cannot be read (${code}).`, { cause: error });
  }
}

/** Looks at the pair itself first: not every runtime refuses a pair that it cannot serve. */
function contextOf(files: CertificateFiles, { certificate, key }: PemPair): SecureContext {
  const parsed = parse(
    `${files.certificate} is no certificate in PEM form`,
    () => new X509Certificate(certificate),
  );
  const private_key = parse(`${files.key} is no private key in PEM form`, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(private_key)) {
    throw new CertificateRefused(
      `The key in ${files.key} is not that of the certificate in ${files.certificate}.`,
    );
  }
  return parse(`${files.certificate} and ${files.key} cannot be served`, () =>
    createSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
  );
}

/** What `work` makes. The text of its own error is left out, because it may quote the key. */
function parse<T>(failure: string, work: () => T): T {
  try {
    return work();
  } catch {
    throw new CertificateRefused(`${failure}.`);
  }
}
