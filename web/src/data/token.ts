/**
 * The token by which the server knows the page. It is in the address once; then the tab keeps it, and when the server has taken
 * it, all tabs of this browser that are of the same address and port, so that links which are opened in new ones work.
 */

/** What is needed of a browser's storage. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const KEY = 'token';

/** Browsers may refuse to keep anything. */
function tried<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

export class Token {
  /** The last one that was given or taken; enough where nothing is kept. */
  private held: string | null;

  constructor(
    private readonly tab: () => Store,
    private readonly browser: () => Store,
    given: string | null,
  ) {
    this.held = given;
    if (given !== null) tried(() => this.tab().setItem(KEY, given), undefined);
  }

  /** Those that may be right, that of this tab first; none is what a server without a token takes. */
  candidates(): string[] {
    const kept = [this.held, ...[this.tab, this.browser].map((store) => tried(() => store().getItem(KEY), null))];
    const found = kept.filter((one): one is string => one !== null);
    return found.length === 0 ? [''] : [...new Set(found)];
  }

  /** The server has taken it. */
  accept(token: string): void {
    if (token === '') return;
    this.held = token;
    for (const store of [this.tab, this.browser]) {
      tried(() => {
        if (store().getItem(KEY) !== token) store().setItem(KEY, token);
      }, undefined);
    }
  }

  /** The server does not take it: it is another one's by now. */
  refuse(token: string): void {
    if (this.held === token) this.held = null;
    for (const store of [this.tab, this.browser]) {
      tried(() => {
        if (store().getItem(KEY) === token) store().removeItem(KEY);
      }, undefined);
    }
  }
}

/** Takes the token out of the address. */
export function takeToken(): Token {
  const address = new URL(location.href);
  const given = address.searchParams.get('token');
  if (given !== null) {
    address.searchParams.delete('token');
    history.replaceState(history.state, '', address);
  }
  return new Token(
    () => sessionStorage,
    () => localStorage,
    given,
  );
}
