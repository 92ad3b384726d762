/** Hooks and functions that components share. */

import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { fittedTo } from '../format';
import type { Model, Topic } from '../model';
import { isPrinting, onTheme } from './theme';

export const ModelContext = createContext<Model | null>(null);

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (model === null) throw new Error('there is no model');
  return model;
}

/** Renders the component again at each emission of a topic. */
export function useTopics(model: Model, ...topics: Topic[]): void {
  const [, renew] = useReducer((round: number) => round + 1, 0);
  const key = topics.join();
  const rendered = model.roundOf(topics);
  useEffect(() => {
    const ends = topics.map((topic) => model.listen(topic, () => renew(0)));
    // Effects run after painting: a topic may have been emitted since the rendering.
    if (model.roundOf(topics) !== rendered) renew(0);
    return () => {
      for (const end of ends) end();
    };
  }, [model, key]);
}

/** Scrolls to an element and focuses it; filters are shown first if they are hidden. */
export function goTo(model: Model, selector: string): void {
  const element = () => document.querySelector<HTMLElement>(selector);
  if (element() === null && !model.hasFilters) model.showFilters(true);
  // After the next rendering.
  requestAnimationFrame(() => {
    const found = element();
    // Centered: the context of a row is above and below.
    found?.scrollIntoView({ block: 'center' });
    found?.focus({ preventScroll: true });
  });
}

export function goToFilters(model: Model): void {
  model.showFilters(true);
  requestAnimationFrame(() => {
    const filters = document.querySelector<HTMLElement>('#filters');
    filters?.scrollIntoView({ block: 'start' });
    filters?.focus({ preventScroll: true });
  });
}

/**
 * A canvas that is drawn at each rendering, at each emission of a topic, and when its size or the
 * theme changes.
 */
export function useCanvas(
  model: Model,
  topics: Topic[],
  draw: (canvas: HTMLCanvasElement) => void,
) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const key = topics.join();
  useLayoutEffect(() => {
    if (canvas.current !== null) latest.current(canvas.current);
  });
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const now = () => latest.current(element);
    const ends = [...topics.map((topic) => model.listen(topic, now)), onTheme(now)];
    const sizes = new ResizeObserver(now);
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      for (const end of ends) end();
    };
  }, [model, key]);
  return canvas;
}

/**
 * Clears a canvas and gives it one pixel for each pixel of the screen; the returned sizes are in
 * CSS pixels.
 */
export function prepared(
  canvas: HTMLCanvasElement,
): { pen: CanvasRenderingContext2D; width: number; height: number } | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext('2d');
  if (width === 0 || height === 0 || pen === null) return null;
  const ratio = isPrinting() ? 3 : Math.min(3, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const widths = new Map<string, number>();

export function setFont(pen: CanvasRenderingContext2D): void {
  pen.font = FONT;
  pen.textBaseline = 'middle';
}

/**
 * The part of a text that fits into a width. Measuring each letter once is much faster than
 * measuring texts.
 */
export function fitted(pen: CanvasRenderingContext2D, text: string, room: number): string {
  return fittedTo(text, room, (letter) => {
    let width = widths.get(letter);
    if (width === undefined) {
      width = pen.measureText(letter).width;
      widths.set(letter, width);
    }
    return width;
  });
}

/** A box beside the pointer. Screen readers find its content in tables. */
export function Tip({
  at,
  children,
}: {
  at: { x: number; y: number };
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const { offsetWidth, offsetHeight } = element;
    element.style.left = `${Math.max(4, Math.min(at.x + 14, innerWidth - offsetWidth - 8))}px`;
    const isBelow = at.y + 18 + offsetHeight < innerHeight;
    element.style.top = `${isBelow ? at.y + 18 : Math.max(4, at.y - offsetHeight - 10)}px`;
  });
  return (
    <div class="tip" ref={box} role="tooltip">
      {children}
    </div>
  );
}
