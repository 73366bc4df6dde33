import { readFileSync, renameSync, writeFileSync } from 'node:fs';
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

/** The start of a certificate's validity in DER: a sequence of two times of 13 characters. */
const VALIDITY = Buffer.from([0x30, 0x1e, 0x17, 0x0d]);
const PAST = { from: '200101000000Z', to: '200201000000Z' };
/** The end of an expired certificate, in Unix seconds. */
export const EXPIRED_S = Date.UTC(2020, 1, 1) / 1_000;

/** A certificate as of `makeCertificate` that has expired. Its signature is wrong, which only clients look at. */
export function makeExpiredCertificate(directory: string, name: string): CertificateFiles {
  const files = makeCertificate(directory, name);
  const pem = readFileSync(files.certificate, 'utf8');
  const der = Buffer.from(pem.replaceAll(/-----.*-----/g, ''), 'base64');
  const from_at = der.indexOf(VALIDITY) + VALIDITY.length;
  der.write(PAST.from, from_at, 'latin1');
  der.write(PAST.to, from_at + PAST.from.length + 2, 'latin1');
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const marks = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----'] as const;
  writeFileSync(files.certificate, [marks[0], ...lines, marks[1], ''].join('\n'));
  return files;
}

/** Puts one pair in the place of another, as a program that renews certificates does. */
export function replaceCertificate(old: CertificateFiles, renewed: CertificateFiles): void {
  renameSync(renewed.certificate, old.certificate);
  renameSync(renewed.key, old.key);
}
