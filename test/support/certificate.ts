import { renameSync } from 'node:fs';
import { join } from 'node:path';
import type { CertificateFiles } from '../../src/http/certificate.ts';

/** Certificates are made by `openssl`, which not every machine has. */
export const hasOpenssl = Bun.which('openssl') !== null;
if (!hasOpenssl) console.warn('Tests of TLS are skipped: there is no openssl to make a certificate with.');

/** A new self-signed certificate for this machine under that common name, with its key, in `<name>.crt` and `.key`. */
export function makeCertificate(directory: string, name: string): CertificateFiles {
  const files = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const made = Bun.spawnSync(
    ['openssl', 'req', '-x509', ...curve, ...subject, '-keyout', files.key, '-out', files.certificate],
    { stdout: 'ignore', stderr: 'pipe' },
  );
  if (!made.success) throw new Error(`openssl failed: ${made.stderr}`);
  return files;
}

/** Puts one pair in the place of another, as a program that renews certificates does. */
export function replaceCertificate(old: CertificateFiles, renewed: CertificateFiles): void {
  renameSync(renewed.certificate, old.certificate);
  renameSync(renewed.key, old.key);
}
