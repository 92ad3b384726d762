/** The head of the page: what is shown, and what is done with all of it. */

import { useState } from 'preact/hooks';
import type { Automatic } from '../engine/automatic';
import { clean, count } from '../format';
import { useModel, useTopics } from './hooks';
import { type Choice, chooseTheme, currentTheme, themeChoice } from './theme';

/** Which executions the automatic groups have. */
function automaticText({ sizes }: Automatic, all: number): string {
  const [middle, slow] = sizes.map(count);
  const part = all < 20 ? 'a quarter' : '1 %, at least 5';
  return `B: the ${slow} slowest of ${count(all)} (${part}). A: the ${middle} around the median. As tracebraid compare takes them.`;
}

export function Header({ onKind, onHelp }: { onKind: (kind: number) => void; onHelp: () => void }) {
  const model = useModel();
  useTopics(model, 'view', 'calm', 'step');
  const [, setTheme] = useState<Choice>(themeChoice());
  const [said, setSaid] = useState('');
  const { pack, shown } = model;
  const kind = pack.kinds[pack.kind];
  const exportPage = async () => {
    setSaid('Exporting…');
    try {
      const page = await model.source.exported(pack.kind);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(page);
      link.download = `${clean(pack.title, 80).replace(/[^\w.-]+/g, '_') || 'executions'}.html`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      setSaid('');
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const turnTheme = () => {
    const next = currentTheme().isDark ? 'light' : 'dark';
    chooseTheme(next);
    setTheme(next);
  };
  const copyLink = async () => {
    const link = model.tell();
    try {
      await navigator.clipboard.writeText(link);
      setSaid(model.source.isAlone ? 'Copied: it is for who has this file.' : 'Copied, without the token.');
    } catch {
      // Browsers give pages the clipboard where they trust the way to them.
      setSaid('The browser gives no clipboard: copy the address above.');
    }
  };
  const { automatic, behind } = model;
  return (
    <header class="top">
      <h1>
        {clean(pack.title, 80) || 'tracebraid'}
        <small>{` ${count(pack.executions)} executions`}</small>
      </h1>
      {pack.kinds.length > 1 && !model.source.isAlone ? (
        <label title={clean(kind?.definition ?? '', 300)}>
          {'of '}
          <select value={pack.kind} onChange={(event) => onKind(Number(event.currentTarget.value))}>
            {pack.kinds.map(({ name, executions }, at) => (
              <option key={name} value={at}>
                {`${clean(name, 60)} (${count(executions)})`}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <span class="kind" title={clean(kind?.definition ?? '', 300)}>
          {clean(kind?.name ?? '', 60)}
        </span>
      )}
      <span class={behind > 0 ? 'busy on' : 'busy'} role="status">
        {behind > 0 ? `approximate: ${count(behind)} to come` : ''}
      </span>
      <span class="gap" />
      <span class="hint" role="status">
        {said || model.said}
      </span>
      <button
        type="button"
        class="main"
        disabled={automatic === null}
        onClick={() => model.chooseAutomatic()}
        title={automatic === null ? 'Durations are not known' : automaticText(automatic, pack.executions)}
      >
        Slowest 1 % vs. middle
      </button>
      <button type="button" onClick={() => model.swap()}>
        Swap A and B
      </button>
      <button type="button" onClick={() => model.reset()}>
        Reset
      </button>
      <button
        type="button"
        aria-pressed={shown.isTall}
        title="Heights of histograms on a logarithmic scale"
        onClick={() => model.look({ isTall: !shown.isTall })}
      >
        log counts
      </button>
      <button
        type="button"
        onClick={copyLink}
        title={
          model.source.isAlone
            ? 'What you see, as a link: for who has this file in the same place'
            : 'What you see, as a link: for this browser, and for who has opened the address that the server printed'
        }
      >
        Copy link
      </button>
      {model.source.isAlone ? null : (
        <button type="button" onClick={exportPage} title="One file that needs no server">
          Export
        </button>
      )}
      <button type="button" onClick={turnTheme} aria-label={currentTheme().isDark ? 'Light colours' : 'Dark colours'}>
        {currentTheme().isDark ? '☀' : '☾'}
      </button>
      <button type="button" onClick={onHelp} aria-label="Help and keyboard">
        ?
      </button>
    </header>
  );
}
