/**
 * Colours of canvases, light and dark. Colour-blind people can distinguish them: blue and orange,
 * and hues of Okabe and Ito.
 */

import { FrameKind } from '../engine/pack';

export interface Theme {
  isDark: boolean;
  text: string;
  soft: string;
  line: string;
  panel: string;
  /** Colours of the bars of A and B. */
  groups: [string, string];
  /** Colours of text about A and B, with a contrast of at least 4.5 to the panel. */
  groupText: [string, string];
  pale: string;
  plain: string;
  /** Ends of the scales for differences: from a small to a great one. */
  less: [string, string];
  more: [string, string];
  focus: string;
  kinds: Record<number, string>;
  states: Record<string, string>;
  others: string[];
}

const STATES = {
  running: '#2a9d6f',
  preempted: '#d55e00',
  runnable: '#e6a817',
  lwp: '#b8860b',
  timer: '#8a8f98',
  futex: '#b96aa8',
  'block-device': '#0072b2',
  network: '#56b4e9',
  queued: '#8c5a3c',
  'unknown-hand-over': '#b0b4ba',
};

const LIGHT: Theme = {
  isDark: false,
  text: '#1c2330',
  soft: '#5a6474',
  line: '#d5dae2',
  panel: '#ffffff',
  groups: ['#2b6cb0', '#c8610a'],
  groupText: ['#2b6cb0', '#b4540a'],
  pale: '#c9d0da',
  plain: '#dfe3e9',
  less: ['#cfe0f1', '#3f86cc'],
  more: ['#fbe3c8', '#ee8a2b'],
  focus: '#111827',
  kinds: {
    [FrameKind.Function]: '#c9d8d2',
    [FrameKind.Call]: '#e4d3a8',
    [FrameKind.Thread]: '#d3c5e3',
    [FrameKind.Reason]: '#e8c3bd',
    [FrameKind.Detail]: '#d6d6d0',
    [FrameKind.Root]: '#dfe3e9',
  },
  states: STATES,
  others: ['#cc79a7', '#7f6bb3', '#a3792b', '#5f8d9e', '#9aa53a'],
};

const DARK: Theme = {
  ...LIGHT,
  isDark: true,
  text: '#e4e8ee',
  soft: '#9aa5b4',
  line: '#333b47',
  panel: '#1a1f27',
  groups: ['#6cb0f0', '#f39a4a'],
  groupText: ['#6cb0f0', '#f39a4a'],
  pale: '#444e5c',
  plain: '#39424e',
  less: ['#33465c', '#4b95dc'],
  more: ['#5a4630', '#ea8f35'],
  focus: '#ffffff',
  kinds: {
    [FrameKind.Function]: '#3c5249',
    [FrameKind.Call]: '#5e5330',
    [FrameKind.Thread]: '#4c4163',
    [FrameKind.Reason]: '#64413b',
    [FrameKind.Detail]: '#47473f',
    [FrameKind.Root]: '#39424e',
  },
};

export type Choice = 'auto' | 'light' | 'dark';

const wishes = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let isOnPaper = false;
let choice: Choice = stored();
let theme = made();

function stored(): Choice {
  try {
    const found = localStorage.getItem('theme');
    return found === 'light' || found === 'dark' ? found : 'auto';
  } catch {
    return 'auto';
  }
}

function made(): Theme {
  const isDark = !isOnPaper && (choice === 'dark' || (choice === 'auto' && wishes.matches));
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  return isDark ? DARK : LIGHT;
}

/** Whether canvases are drawn for paper: light, and with more pixels than the screen has. */
export function isPrinting(): boolean {
  return isOnPaper;
}

function renew(): void {
  theme = made();
  for (const listener of listeners) listener();
}

wishes.addEventListener('change', renew);

for (const [event, isStart] of [
  ['beforeprint', true],
  ['afterprint', false],
] as const) {
  addEventListener(event, () => {
    isOnPaper = isStart;
    renew();
  });
}

export function currentTheme(): Theme {
  return theme;
}

export function themeChoice(): Choice {
  return choice;
}

export function chooseTheme(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem('theme', next);
  } catch {
    // Pages from files may not have storage.
  }
  renew();
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function channels(colour: string): [number, number, number] {
  const value = Number.parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Interpolates between two colours. */
export function mix(one: string, other: string, part: number): string {
  const [a, b] = [channels(one), channels(other)];
  const at = (place: 0 | 1 | 2) => Math.round(a[place] + (b[place] - a[place]) * part);
  return `rgb(${at(0)} ${at(1)} ${at(2)})`;
}

/** Colour of a difference in standard deviations: it starts at 0.5 and is full at 3. */
export function colourOf(deviations: number, isSure: boolean): string {
  if (!isSure || deviations === 0) return theme.plain;
  const part = Math.min(1, Math.max(0, (Math.abs(deviations) - 0.5) / 2.5));
  const [faint, full] = deviations < 0 ? theme.less : theme.more;
  return mix(faint, full, part);
}

/** Colour of a thread's state; unknown states get one by their name. */
export function stateColour(state: string): string {
  if (Object.hasOwn(theme.states, state)) return theme.states[state];
  let hash = 0;
  for (let at = 0; at < state.length; at++) hash = (hash * 31 + state.charCodeAt(at)) >>> 0;
  return theme.others[hash % theme.others.length];
}

/** Colour of text on a background. */
export function inkOn(colour: string): string {
  const [r, g, b] = colour.startsWith('#')
    ? channels(colour)
    : (colour.match(/\d+/g) ?? []).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#16202c' : theme.isDark ? '#eef2f6' : '#ffffff';
}
