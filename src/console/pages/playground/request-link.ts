import { organizationPath } from '../paths.ts';
import { BODY_BYTES_MAX } from './record.tsx';

/** The field of the fragment: no request of the browser carries it, and no log has it. */
export const LINKED_REQUEST = 'request';
/** Programs that pass links on cut those that are longer. */
const LINK_LENGTH_MAX = 16_000;

/** A link to the playground that has the request, compressed, in its fragment; null where it would be too long. */
export async function linkOf(body: string, organization_id: string): Promise<string | null> {
  const packed = await packedText(body);
  const link = `${location.origin}${organizationPath(organization_id, 'playground')}#${LINKED_REQUEST}=${packed}`;
  return link.length > LINK_LENGTH_MAX ? null : link;
}

async function packedText(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const characters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(characters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The text that a link has in its fragment; null where it has none that could be a request. */
export async function linkedText(packed: string): Promise<string | null> {
  try {
    const characters = atob(packed.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(characters, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      // A short link can hold gigabytes.
      if (length > BODY_BYTES_MAX) return null;
      parts.push(value);
    }
    return await new Blob(parts).text();
  } catch {
    return null;
  }
}
