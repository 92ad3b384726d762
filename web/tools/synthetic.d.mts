export interface Options {
  executions?: number;
  metrics?: number;
  contexts?: number;
  entries?: number;
  seed?: number;
  hostile?: boolean;
  paths?: boolean;
  identifiers?: boolean;
  title?: string;
}
// biome-ignore lint/suspicious/noExplicitAny: tests break headers in every way
export type Header = any;
export const HOSTILE: string[];
export function random(seed: number): () => number;
export function makePack(options?: Options): {
  bytes: Uint8Array<ArrayBuffer>;
  header: Header;
  pathOf(row: number): Record<string, unknown>;
};
export function pack(
  header: Header,
  sections: { name: string; array: ArrayBufferView }[],
): Uint8Array<ArrayBuffer>;
