/** Data blocks of exported pages: base64 of gzip, decoded in pieces. */

/** Characters of a piece: a multiple of four, so that each piece is valid base64. */
export const PIECE = 1 << 22;

/** Decodes consecutive pieces of base64. */
export class Unpacking {
  private readonly stream = new DecompressionStream('gzip');
  private readonly writer = this.stream.writable.getWriter();
  private readonly bytes = new Response(this.stream.readable).arrayBuffer();

  constructor() {
    // The reader of the bytes gets the error.
    this.bytes.catch(() => {});
  }

  add(letters: string): void {
    let text: string;
    try {
      text = atob(letters);
    } catch {
      throw new Error('The data in this page is not base64.');
    }
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    this.writer.write(bytes).catch(() => {});
  }

  async end(): Promise<ArrayBuffer> {
    this.writer.close().catch(() => {});
    try {
      return await this.bytes;
    } catch {
      throw new Error('The data in this page is damaged (not gzip).');
    }
  }
}
