/** The first bytes of a frame with data, and of one to skip (RFC 8878, 3.1); the first byte of the latter varies. */
const DATA_MAGIC = 0xfd2fb528;
const SKIPPED_MAGIC = 0x184d2a50;
const SKIPPED_MAGIC_MASK = 0xfffffff0;

const MAGIC_BYTES = 4;
const SIZE_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
/** By the flags of a frame's descriptor. */
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
/** A block of this type has one byte, however large what it stands for is. */
const RLE = 1;

/**
 * Walks over the frames of zstd data without decoding them. Bun's decoder does not tell that its input ended within a
 * frame, and may have written all of the content by then.
 */
export class ZstdFrames {
  #state: 'magic' | 'size' | 'descriptor' | 'block' | 'broken' = 'magic';
  /** The bytes of the field that is being read, as one number, least significant byte first. */
  #field = 0;
  #field_read = 0;
  #field_bytes = MAGIC_BYTES;
  #skipped_bytes = 0;
  #frames = 0;
  #has_checksum = false;

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.byteLength && this.#state !== 'broken') {
      if (this.#skipped_bytes > 0) {
        const step = Math.min(this.#skipped_bytes, bytes.byteLength - at);
        this.#skipped_bytes -= step;
        at += step;
        continue;
      }
      this.#field += (bytes[at] ?? 0) * 2 ** (8 * this.#field_read);
      this.#field_read += 1;
      at += 1;
      if (this.#field_read === this.#field_bytes) this.#take(this.#field);
    }
  }

  /** True for one or more frames and nothing else, so far. */
  get is_whole(): boolean {
    return this.#state === 'magic' && this.#field_read === 0 && this.#skipped_bytes === 0 && this.#frames > 0;
  }

  #take(field: number): void {
    this.#field = 0;
    this.#field_read = 0;
    switch (this.#state) {
      case 'magic':
        if (field === DATA_MAGIC) this.#expect('descriptor', 1);
        else if ((field & SKIPPED_MAGIC_MASK) === SKIPPED_MAGIC) this.#expect('size', SIZE_BYTES);
        else this.#state = 'broken';
        return;
      case 'size':
        this.#endFrame(field);
        return;
      case 'descriptor': {
        const is_single_segment = (field & 0b10_0000) !== 0;
        this.#has_checksum = (field & 0b100) !== 0;
        const dictionary = DICTIONARY_BYTES[field & 0b11] ?? 0;
        const content_size = CONTENT_SIZE_BYTES[field >> 6] ?? 0;
        // A single segment has no window, and names its size in a byte at least.
        this.#skipped_bytes = dictionary + (is_single_segment ? Math.max(1, content_size) : 1 + content_size);
        this.#expect('block', BLOCK_HEADER_BYTES);
        return;
      }
      case 'block': {
        const is_last = (field & 1) !== 0;
        const size = ((field >> 1) & 0b11) === RLE ? 1 : field >> 3;
        if (is_last) this.#endFrame(size + (this.#has_checksum ? CHECKSUM_BYTES : 0));
        else this.#skipped_bytes = size;
        return;
      }
      case 'broken':
    }
  }

  #endFrame(remaining_bytes: number): void {
    this.#skipped_bytes = remaining_bytes;
    this.#frames += 1;
    this.#expect('magic', MAGIC_BYTES);
  }

  #expect(state: 'magic' | 'size' | 'descriptor' | 'block', field_bytes: number): void {
    this.#state = state;
    this.#field_bytes = field_bytes;
  }
}
