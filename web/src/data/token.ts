/**
 * The token that authenticates the page. It comes with the address once. The tab stores it, and
 * after the server has accepted it, so does the browser for this address and port: links then open
 * in new tabs.
 */

/** The part of `Storage` that is used. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const KEY = 'token';

/** Storage may throw: browsers can refuse it. */
function tried<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

export class Token {
  /** The last token given or accepted; the only copy if storage is refused. */
  private held: string | null;

  constructor(
    private readonly tab: () => Store,
    private readonly browser: () => Store,
    given: string | null,
  ) {
    this.held = given;
    if (given !== null) tried(() => this.tab().setItem(KEY, given), undefined);
  }

  /** Tokens to try, that of this tab first; an empty one for servers without a token. */
  candidates(): string[] {
    const kept = [
      this.held,
      ...[this.tab, this.browser].map((store) => tried(() => store().getItem(KEY), null)),
    ];
    const found = kept.filter((one): one is string => one !== null);
    return found.length === 0 ? [''] : [...new Set(found)];
  }

  /** Stores a token that the server accepted. */
  accept(token: string): void {
    if (token === '') return;
    this.held = token;
    for (const store of [this.tab, this.browser]) {
      tried(() => {
        if (store().getItem(KEY) !== token) store().setItem(KEY, token);
      }, undefined);
    }
  }

  /** Deletes a token that the server refused: it belongs to an earlier server. */
  refuse(token: string): void {
    if (this.held === token) this.held = null;
    for (const store of [this.tab, this.browser]) {
      tried(() => {
        if (store().getItem(KEY) === token) store().removeItem(KEY);
      }, undefined);
    }
  }
}

/** Removes the token from the address. */
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
