import type { AnswerOf, api } from '../client.ts';

/** The description of a passkey that the service asks for; all bytes are base64url. */
type Request = AnswerOf<typeof api.account.passkeys.begin.post>;

const NO_ANSWER = 'No passkey was used. This device may have none for this service.';

/** Returns true if the browser knows passkeys, in the version of their interface that these functions use. */
export function canUsePasskeys(): boolean {
  return 'PublicKeyCredential' in window && 'parseRequestOptionsFromJSON' in PublicKeyCredential;
}

/**
 * Lets the browser make a passkey. Throws a sentence where none was made, because the reader has changed their mind or the
 * authenticator has one for this account already.
 */
export async function makePasskey(request: Request) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON({
    challenge: request.challenge,
    rp: { id: request.domain, name: request.service_name },
    user: { id: request.user_handle, name: request.user_name, displayName: request.user_name },
    pubKeyCredParams: request.algorithms.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: request.known_ids.map((id) => ({ type: 'public-key', id })),
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    attestation: 'none',
  });
  const made = await unlessRefused('No passkey was made.', () => navigator.credentials.create({ publicKey }));
  const { id, response } = made;
  if (!(response instanceof AuthenticatorAttestationResponse)) throw new Error('No passkey was made.');
  return {
    id,
    client_data: base64url(response.clientDataJSON),
    attestation: base64url(response.attestationObject),
    transports: response.getTransports().join(','),
  };
}

/** Lets the reader choose a passkey, and its authenticator sign the question. Throws a sentence where they chose none. */
export async function answerPasskeyQuestion({
  challenge,
  domain,
}: AnswerOf<typeof api.passkey.question.post>) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON({
    challenge,
    rpId: domain,
    userVerification: 'required',
  });
  const given = await unlessRefused(NO_ANSWER, () => navigator.credentials.get({ publicKey }));
  const { id, response } = given;
  if (!(response instanceof AuthenticatorAssertionResponse)) throw new Error(NO_ANSWER);
  return {
    id,
    client_data: base64url(response.clientDataJSON),
    authenticator_data: base64url(response.authenticatorData),
    signature: base64url(response.signature),
  };
}

async function unlessRefused(
  sentence: string,
  ceremony: () => Promise<Credential | null>,
): Promise<PublicKeyCredential> {
  try {
    const credential = await ceremony();
    if (credential instanceof PublicKeyCredential) return credential;
  } catch (thrown) {
    const name = thrown instanceof DOMException ? thrown.name : '';
    // The browser's one word for a reader who closes its dialog, and for a device that has no passkey.
    const is_refusal = name === 'NotAllowedError' || name === 'AbortError';
    if (name === 'InvalidStateError') throw new Error('This device has a passkey of your account already.');
    if (!is_refusal) throw thrown;
  }
  throw new Error(sentence);
}

function base64url(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
