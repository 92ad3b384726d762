import type { makePack } from './synthetic.mjs';
export function serve(
  packs: ReturnType<typeof makePack>[],
  options?: { token?: string; port?: number },
): Promise<{ origin: string; address: string; stop(): void }>;
