/** The head of the page: what is shown, and what is done with all of it. */

import { useState } from 'preact/hooks';
import { clean, count } from '../format';
import { useModel, useTopics } from './hooks';
import { type Choice, chooseTheme, currentTheme, themeChoice } from './theme';

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
  const { behind } = model;
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
        {said}
      </span>
      <button
        type="button"
        class="main"
        onClick={() => model.automatic()}
        title="B: the slowest 1 %. A: the half in the middle."
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
