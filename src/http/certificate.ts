import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContext } from 'node:tls';
import { systemErrorCode } from '../errors/system-error-code.ts';

/** The PEM files of a certificate (with its chain) and of its private key. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate that cannot be served, with the reason in one sentence. */
export class CertificateRefused extends Error {
  override readonly name = 'CertificateRefused';
}

/** Receives the results of reading changed files. */
export interface CertificateObserver {
  readonly onReload: () => void;
  /** Called when the new files cannot be served; the old certificate stays. */
  readonly onFailure: (error: CertificateRefused) => void;
}

/** The time in which clients accept a certificate, in Unix milliseconds. */
interface Validity {
  readonly from_ms: number;
  readonly to_ms: number;
}

/** A certificate as new connections get it. */
interface Served {
  readonly context: SecureContext;
  readonly validity: Validity;
}

interface PemPair {
  readonly certificate: string;
  readonly key: string;
}

/**
 * The interval at which the files are read. Reading sees changes that watching misses, such as a moved link
 * higher up.
 */
const LOOK_MS = 5_000;

/**
 * The certificate in two files, read again when they change. Open connections keep the one that they began
 * with.
 */
export class Certificate {
  #files: CertificateFiles;
  /** The last content of the files, valid or not. */
  #read: PemPair;
  #served: Served;
  #unreadable: string | undefined;
  #timer: Timer | undefined;

  private constructor(files: CertificateFiles, read: PemPair) {
    this.#files = files;
    this.#read = read;
    this.#served = servedOf(files, read);
  }

  /** Reads the files. Rejects with `CertificateRefused`. */
  static async open(files: CertificateFiles): Promise<Certificate> {
    return new Certificate(files, await readPair(files));
  }

  /** The context for new connections. */
  get context(): SecureContext {
    return this.#served.context;
  }

  get validity(): Validity {
    return this.#served.validity;
  }

  /** Starts checking for changes. Reports a repeated failure once. */
  watch(observer: CertificateObserver, look_ms: number = LOOK_MS): void {
    this.#timer = setInterval(() => void this.#look(observer), look_ms);
    this.#timer.unref();
  }

  /** Reads these files from now on. If it rejects with `CertificateRefused`, the old ones stay. */
  async use(files: CertificateFiles): Promise<void> {
    const read = await readPair(files);
    this.#served = servedOf(files, read);
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
      this.#served = servedOf(files, read);
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

/** Checks the pair itself first, because not every runtime refuses an invalid one. */
function servedOf(files: CertificateFiles, { certificate, key }: PemPair): Served {
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
  const context = parse(`${files.certificate} and ${files.key} cannot be served`, () =>
    createSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
  );
  return {
    context,
    validity: { from_ms: Date.parse(parsed.validFrom), to_ms: Date.parse(parsed.validTo) },
  };
}

/** Returns the result of `work`. The text of its error is dropped, because it may quote the key. */
function parse<T>(failure: string, work: () => T): T {
  try {
    return work();
  } catch {
    throw new CertificateRefused(`${failure}.`);
  }
}
