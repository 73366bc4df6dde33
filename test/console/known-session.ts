import type { SignedIn, SignIn } from '../../src/console/people/sign-in.ts';

/** Sign-in for tests of other parts: somebody is signed in, and everything else fails. */
export class KnownSession implements SignIn {
  readonly sign_up = 'open';
  /** Who is signed in; null for nobody. */
  session: SignedIn | null = null;

  sessionOf(): Promise<SignedIn | null> {
    return Promise.resolve(this.session);
  }

  signUp = unexpected;
  requestVerification = unexpected;
  verify = unexpected;
  signIn = unexpected;
  signOut = unexpected;
  sessions = unexpected;
  endSession = unexpected;
  endOtherSessions = unexpected;
  changePassword = unexpected;
  requestReset = unexpected;
  reset = unexpected;
  deleteAccount = unexpected;
  close = () => Promise.resolve();
}

function unexpected(): Promise<never> {
  return Promise.reject(new Error('this test does not sign in or out'));
}
