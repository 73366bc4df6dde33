import { type HiddenStates, STATE_SIZE } from '../../native/engine.ts';

/** Returns the hidden states of a question as text, in 16 bits a number: more precise than 8-bit weights. */
export function storedStates(states: HiddenStates): string {
  return Buffer.from(Float16Array.from(states.flat()).buffer).toString('base64');
}

/** Returns the `count` hidden states in a text of `storedStates`; null if it has others, as an earlier program's have. */
export function readStates(stored: string, count: number): HiddenStates | null {
  // A copy, because the bytes of a small buffer may begin at an odd place.
  const numbers = new Float16Array(Uint8Array.from(Buffer.from(stored, 'base64')).buffer);
  if (numbers.length !== count * STATE_SIZE) return null;
  return Array.from({ length: count }, (_, state) =>
    Array.from(numbers.subarray(state * STATE_SIZE, (state + 1) * STATE_SIZE)),
  );
}
