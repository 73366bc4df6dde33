import { createHmac } from 'node:crypto';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const PERIOD_MS = 30_000;

/** The code that an authenticator app shows at a time for the secret of an `otpauth:` address (RFC 6238). */
export function appCode(app_url: string, now_ms: number = Date.now()): string {
  const secret = new URL(app_url).searchParams.get('secret') ?? '';
  const bits = [...secret.replaceAll('=', '')]
    .map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  const bytes = bits.match(/.{8}/g) ?? [];
  const key = Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(now_ms / PERIOD_MS)));
  const digest = createHmac('sha1', key).update(counter).digest();
  const at = (digest.at(-1) ?? 0) & 15;
  return String((digest.readUInt32BE(at) & 0x7f_ff_ff_ff) % 1_000_000).padStart(6, '0');
}

/** A code that no app shows: the next hour's one, unless that is the present one too. */
export function wrongCode(app_url: string): string {
  const far = appCode(app_url, Date.now() + 3_600_000);
  return far === appCode(app_url) ? appCode(app_url, Date.now() + 7_200_000) : far;
}
