import type { makePack } from './synthetic.mjs';
export function alonePage(bytes: Uint8Array, paths?: Record<string, unknown>): string;
export function withDataOf(page: string, exported: string): string;
export function aloneFrom(pack: ReturnType<typeof makePack>): string;
