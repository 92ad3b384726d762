/** The head of the page: the database, the kind of executions, and actions on the whole view. */

import { useState } from 'preact/hooks';
import type { Automatic } from '../engine/automatic';
import { clean, count, middle } from '../format';
import { nounsOf } from '../verdict';
import { useModel, useTopics } from './hooks';
import { type Choice, chooseTheme, currentTheme, themeChoice } from './theme';

/** The executions in the groups that the page opens with. */
function automaticText({ sizes }: Automatic, all: number): string {
  const [middle, slow] = sizes.map(count);
  const part = all < 20 ? 'a quarter' : '1 %, at least 5';
  return `B: the ${slow} slowest of ${count(all)} (${part}). A: the ${middle} around the median. These are the default groups of tracebraid compare.`;
}

export function Header({ onKind, onHelp }: { onKind: (kind: number) => void; onHelp: () => void }) {
  const model = useModel();
  useTopics(model, 'view', 'calm', 'step');
  const [, setTheme] = useState<Choice>(themeChoice());
  const [said, setSaid] = useState('');
  const { pack } = model;
  const kind = pack.kinds[pack.kind];
  const hasKinds = pack.kinds.length > 1 && !model.source.isAlone;
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
      setSaid(
        model.source.isAlone
          ? 'Link copied. It needs this file.'
          : 'Link copied, without the token.',
      );
    } catch {
      // Browsers allow the clipboard on secure origins only.
      setSaid('The browser refuses access to the clipboard. Copy the address of the page instead.');
    }
  };
  const { automatic, behind } = model;
  return (
    <header class="top">
      <h1 title={hasKinds ? undefined : clean(kind?.definition ?? '', 300)}>
        {clean(pack.title, 80) || 'tracebraid'}
        <small>{` ${count(pack.executions)} ${hasKinds ? 'executions' : nounsOf(kind)[1]}`}</small>
      </h1>
      {hasKinds ? (
        <label title={clean(kind?.definition ?? '', 300)}>
          <span class="unseen">Kind of executions</span>
          <select value={pack.kind} onChange={(event) => onKind(Number(event.currentTarget.value))}>
            {pack.kinds.map(({ name, executions }, at) => (
              <option key={name} value={at}>
                {`${middle(name, 60)} (${count(executions)})`}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <span class={behind > 0 ? 'busy on' : 'busy'} role="status">
        {behind > 0 ? `approximate: ${count(behind)} executions left` : ''}
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
        title={
          automatic === null ? 'Durations are unknown' : automaticText(automatic, pack.executions)
        }
      >
        Slowest 1 % vs. middle half
      </button>
      <button type="button" onClick={() => model.swap()}>
        Swap A and B
      </button>
      <button
        type="button"
        title="Remove the filters of both groups, the search and the zoom"
        onClick={() => model.reset()}
      >
        Reset
      </button>
      <button
        type="button"
        onClick={copyLink}
        title={
          model.source.isAlone
            ? 'A link to this view of this file'
            : 'A link to this view, for every browser that has opened the address with the token'
        }
      >
        Copy link
      </button>
      {model.source.isAlone ? null : (
        <button
          type="button"
          onClick={exportPage}
          title="Save this page with its executions as one file, which needs no server"
        >
          Export
        </button>
      )}
      <button
        type="button"
        onClick={turnTheme}
        aria-label={currentTheme().isDark ? 'Light colours' : 'Dark colours'}
      >
        {currentTheme().isDark ? '☀' : '☾'}
      </button>
      <button type="button" onClick={onHelp} aria-label="Help and keyboard">
        ?
      </button>
    </header>
  );
}
