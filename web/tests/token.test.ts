import { describe, expect, it } from 'vitest';
import { type Store, Token } from '../src/data/token';

function store(): Store & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

const none = (): Store => {
  throw new Error('the browser keeps nothing');
};

describe('tokens', () => {
  it('are of the tab until the server takes them, then of the browser', () => {
    const [tab, browser] = [store(), store()];
    const token = new Token(
      () => tab,
      () => browser,
      'right',
    );
    expect(tab.kept.get('token')).toBe('right');
    expect(browser.kept.size).toBe(0);
    expect(token.candidates()).toEqual(['right']);
    token.accept('right');
    // Another tab, with a link without a token.
    const other = store();
    const second = new Token(
      () => other,
      () => browser,
      null,
    );
    expect(second.candidates()).toEqual(['right']);
    second.accept('right');
    expect(other.kept.get('token')).toBe('right');
  });

  it('that are wrong do not take the place of right ones', () => {
    const [tab, browser] = [store(), store()];
    browser.setItem('token', 'right');
    const token = new Token(
      () => tab,
      () => browser,
      'wrong',
    );
    expect(token.candidates()).toEqual(['wrong', 'right']);
    token.refuse('wrong');
    expect(token.candidates()).toEqual(['right']);
    expect(tab.kept.size).toBe(0);
  });

  it('of a server that is no more are forgotten; that of the next one, which another tab has, is found', () => {
    const [tab, browser] = [store(), store()];
    const token = new Token(
      () => tab,
      () => browser,
      'old',
    );
    token.accept('old');
    browser.setItem('token', 'new');
    expect(token.candidates()).toEqual(['old', 'new']);
    token.refuse('old');
    token.accept('new');
    expect(token.candidates()).toEqual(['new']);
    token.refuse('new');
    expect([tab.kept.size, browser.kept.size]).toEqual([0, 0]);
    expect(token.candidates()).toEqual(['']);
  });

  it('last as long as the page where the browser keeps nothing, and are not kept if there is none', () => {
    const token = new Token(none, none, 'right');
    token.accept('right');
    expect(token.candidates()).toEqual(['right']);
    token.refuse('right');
    expect(token.candidates()).toEqual(['']);
    const [tab, browser] = [store(), store()];
    const open = new Token(
      () => tab,
      () => browser,
      null,
    );
    open.accept('');
    expect([tab.kept.size, browser.kept.size]).toEqual([0, 0]);
  });
});
