import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** The bits of an authenticator's flags (WebAuthn, 6.1): somebody touched it, proved who they are, a key follows. */
const [PRESENT, VERIFIED, HAS_KEY] = [0x01, 0x04, 0x40];

/** Deviations of an authenticator from the protocol. */
interface Misdeeds {
  readonly origin?: string;
  readonly domain?: string;
  /** False for a touch without a PIN, a finger or a face. */
  readonly is_verified?: boolean;
  /** The counter of signatures. */
  readonly signatures?: number;
  /** The id of a passkey, instead of its own. */
  readonly id?: string;
}

/** A passkey in software (ES256, without an attestation), which answers as a browser does. */
export class Authenticator {
  readonly id = randomBytes(32).toString('base64url');
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #signatures = 0;

  /** The new passkey for a request of the service, from a page of that origin. */
  create(
    request: { readonly challenge: string; readonly domain: string },
    origin: string,
    misdeeds: Misdeeds = {},
  ) {
    const id = misdeeds.id ?? this.id;
    const jwk = this.#keys.publicKey.export({ format: 'jwk' });
    const raw_id = Buffer.from(id, 'base64url');
    const [x, y] = [jwk.x, jwk.y].map((part) => Buffer.from(part ?? '', 'base64url'));
    // A COSE key: type 2 (EC), algorithm -7 (ES256), curve 1 (P-256), and the point.
    const key = cborMap([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, x ?? Buffer.alloc(0)],
      [-3, y ?? Buffer.alloc(0)],
    ]);
    const length = Buffer.from([raw_id.length >> 8, raw_id.length & 0xff]);
    const data = Buffer.concat([
      this.#data({ ...misdeeds, domain: misdeeds.domain ?? request.domain }, HAS_KEY),
      Buffer.alloc(16),
      length,
      raw_id,
      key,
    ]);
    const attestation = cborMap([
      ['fmt', 'none'],
      ['attStmt', []],
      ['authData', data],
    ]);
    return {
      id,
      client_data: clientData('webauthn.create', request.challenge, misdeeds.origin ?? origin),
      attestation: attestation.toString('base64url'),
      transports: 'internal',
    };
  }

  /** The answer to a question of the service, from a page of that origin. */
  answer(
    question: { readonly challenge: string; readonly domain: string },
    origin: string,
    misdeeds: Misdeeds = {},
  ) {
    this.#signatures += 1;
    const data = this.#data({
      signatures: this.#signatures,
      ...misdeeds,
      domain: misdeeds.domain ?? question.domain,
    });
    const client_data = clientData('webauthn.get', question.challenge, misdeeds.origin ?? origin);
    const signed = Buffer.concat([data, sha256(Buffer.from(client_data, 'base64url'))]);
    return {
      id: misdeeds.id ?? this.id,
      client_data,
      authenticator_data: data.toString('base64url'),
      signature: sign('sha256', signed, this.#keys.privateKey).toString('base64url'),
    };
  }

  #data({ domain = '', is_verified = true, signatures = 0 }: Misdeeds, more_flags = 0): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(signatures);
    const flags = PRESENT | (is_verified ? VERIFIED : 0) | more_flags;
    return Buffer.concat([sha256(Buffer.from(domain)), Buffer.from([flags]), counter]);
  }
}

function clientData(type: string, challenge: string, origin: string): string {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })).toString('base64url');
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

type Cbor = number | string | Buffer | readonly [];

/** A map in CBOR (RFC 8949); an empty array stands for an empty map. */
function cborMap(entries: readonly (readonly [Cbor, Cbor])[]): Buffer {
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(cbor)]);
}

function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, value.length), Buffer.from(value)]);
  if (value instanceof Buffer) return Buffer.concat([head(2, value.length), value]);
  return head(5, 0);
}

function head(kind: number, argument: number): Buffer {
  const first = kind << 5;
  if (argument < 24) return Buffer.from([first | argument]);
  return argument < 256
    ? Buffer.from([first | 24, argument])
    : Buffer.from([first | 25, argument >> 8, argument & 0xff]);
}
