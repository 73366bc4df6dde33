/** Collects pieces of bytes. */
export class BytePieces {
  size = 0;
  /** Nearly everything comes in one piece. */
  #first: Uint8Array | undefined;
  /** One growing buffer, because single bytes would take a hundred times their size as pieces. */
  #buffer: Bun.ArrayBufferSink | undefined;

  add(piece: Uint8Array): void {
    this.size += piece.byteLength;
    if (this.#first === undefined) {
      this.#first = piece;
      return;
    }
    if (this.#buffer === undefined) {
      this.#buffer = new Bun.ArrayBufferSink();
      this.#buffer.start({ asUint8Array: true });
      this.#buffer.write(this.#first);
    }
    this.#buffer.write(piece);
  }

  /** Returns all bytes; no more can be added. */
  bytes(): Uint8Array {
    const bytes = this.#buffer?.end() ?? this.#first ?? new Uint8Array();
    return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  }
}
