/** The page: opens executions, and arranges panels. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { fromAddress, initial, type Shown } from '../data/address';
import { makeReady } from '../data/opening';
import { type DataSource, openSource } from '../data/source';
import { clean, percent } from '../format';
import { Model } from '../model';
import { Apart } from './apart';
import { Executions } from './executions';
import { Filters } from './filters';
import { Flame } from './flame';
import { filterBy, steer } from './flame-keys';
import { Header } from './header';
import { Help } from './help';
import { goToFilters, ModelContext, useTopics } from './hooks';
import { Pins } from './pins';
import { Ranking } from './ranking';
import { Summary } from './summary';
import { onTheme } from './theme';
import { Timeline } from './timeline';

export function App() {
  const [source] = useState<DataSource>(openSource);
  const [model, setModel] = useState<Model | null>(null);
  const [error, setError] = useState('');
  const [said, setSaid] = useState('Opening…');
  const [isHelp, setHelp] = useState(false);
  const [, setTheme] = useState(0);
  const latest = useRef(0);
  // A ref, not the state: listeners must see the new model before the next render.
  const shown = useRef<Model | null>(null);

  const open = async (wanted: Shown) => {
    shown.current?.close();
    shown.current = null;
    setModel(null);
    setError('');
    setSaid('Opening…');
    try {
      performance.mark('open');
      const round = ++latest.current;
      const progress = (what: string, part?: number) => {
        if (round === latest.current)
          setSaid(part === undefined ? `${what}…` : `${what}… ${percent(part, 1)}`);
      };
      const given = await source.pack(wanted.kind, progress);
      performance.mark('bytes');
      const ready = await makeReady(given, progress);
      performance.mark('decoded');
      // Another kind was chosen in the meantime.
      if (round !== latest.current) return;
      document.title = `${clean(ready.pack.title, 80) || 'executions'} · tracebraid`;
      const made = new Model(ready, source, wanted);
      performance.mark('ready');
      shown.current = made;
      setModel(made);
      Object.assign(window, { tracebraid: made });
    } catch (failed) {
      setError(failed instanceof Error ? failed.message : String(failed));
    }
  };
  const toKind = (kind: number) => {
    shown.current?.tell();
    history.pushState(null, '', `#k=${kind}`);
    void open({ ...initial(), kind });
  };

  // Only once.
  useEffect(() => void open(fromAddress(location.hash)), []);
  useEffect(() => onTheme(() => setTheme((round) => round + 1)), []);
  useEffect(() => {
    const back = () => {
      const wanted = fromAddress(location.hash);
      const model = shown.current;
      if (!source.isAlone && wanted.kind !== (model?.pack.kind ?? -1)) {
        void open(wanted);
      } else model?.restore(wanted);
    };
    const key = (event: KeyboardEvent) => {
      if (shown.current !== null) keyAnywhere(event, shown.current, () => setHelp(true));
    };
    addEventListener('popstate', back);
    addEventListener('keydown', key);
    return () => {
      removeEventListener('popstate', back);
      removeEventListener('keydown', key);
    };
  }, []);

  if (error !== '') {
    return (
      <main class="message">
        <h1>The executions cannot be shown</h1>
        <p class="error" role="alert">
          {clean(error, 500)}
        </p>
      </main>
    );
  }
  if (model === null) {
    return (
      <main class="message" aria-busy="true">
        <p role="status">{said}</p>
      </main>
    );
  }
  return (
    <ModelContext.Provider value={model}>
      {model.pack.executions === 0 ? null : <SkipLinks model={model} />}
      <Header onKind={toKind} onHelp={() => setHelp(true)} />
      <main>
        {model.pack.executions === 0 ? (
          <p class="panel hint">There are no executions of this kind.</p>
        ) : (
          <Panels model={model} />
        )}
      </main>
      <Timeline />
      <Help isOpen={isHelp} onClose={() => setHelp(false)} />
    </ModelContext.Provider>
  );
}

function Panels({ model }: { model: Model }) {
  useTopics(model, 'view');
  return (
    <>
      <Summary />
      <div class={model.hasFilters ? 'middle' : 'middle without-filters'}>
        <Flame />
        <div class="beside">
          <Pins />
          <Ranking />
          <Apart />
        </div>
        <Filters />
        <Executions />
      </div>
    </>
  );
}

/**
 * Links that the keyboard reaches first. The address is that of the view, so they do not change it.
 */
function SkipLinks({ model }: { model: Model }) {
  const link = (selector: string, text: string) => (
    <a
      href={selector}
      onClick={(event) => {
        event.preventDefault();
        if (selector === '#filters') goToFilters(model);
        else document.querySelector<HTMLElement>(selector)?.focus();
      }}
    >
      {text}
    </a>
  );
  return (
    <nav class="skip" aria-label="Skip links">
      {link('#flame', 'Skip to the flame graph')}
      {link('#differences', 'Skip to the differences')}
      {link('#filters', 'Skip to the filters')}
      {link('#executions', 'Skip to the executions')}
    </nav>
  );
}

/** Keys that work wherever the focus is, except in text fields and while a dialog is open. */
function keyAnywhere(event: KeyboardEvent, model: Model, help: () => void): void {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    document.querySelector('dialog[open]') !== null
  )
    return;
  const target = event.target as HTMLElement;
  const isInField = target.matches('select, textarea, input:not([type=checkbox])');
  if (isInField) return;
  const letter = event.key.toLowerCase();
  if (event.key === '/') document.querySelector<HTMLInputElement>('#search')?.focus();
  else if (event.key === '?') help();
  else if (letter === 'w' || letter === 'a' || letter === 's' || letter === 'd')
    steer(model, letter);
  else if (letter === 'p' && model.cursor !== 0) model.pin(model.cursor);
  else if (letter === 'f') filterBy(model);
  else if (event.key === 'Escape') {
    if (model.shown.search !== '') model.setSearch('');
    else if (model.shown.zoom !== 0) model.zoomTo(0);
  } else return;
  event.preventDefault();
}
