/** What components have in common. */

import { createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { fittedTo } from '../format';
import type { Model, Topic } from '../model';
import { onTheme } from './theme';

export const ModelContext = createContext<Model | null>(null);

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (model === null) throw new Error('there is no model');
  return model;
}

/** Renders anew whenever one of these topics comes up. */
export function useTopics(model: Model, ...topics: Topic[]): void {
  const [, renew] = useReducer((round: number) => round + 1, 0);
  const key = topics.join();
  useEffect(() => {
    const ends = topics.map((topic) => model.listen(topic, () => renew(0)));
    return () => {
      for (const end of ends) end();
    };
  }, [model, key]);
}

/** A canvas that is drawn whenever one of these topics comes up, its size or the theme changes. */
export function useCanvas(model: Model, topics: Topic[], draw: (canvas: HTMLCanvasElement) => void) {
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

/** Gives the canvas as many pixels as it has on the screen; sizes are in CSS pixels. */
export function prepared(
  canvas: HTMLCanvasElement,
): { pen: CanvasRenderingContext2D; width: number; height: number } | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext('2d');
  if (width === 0 || height === 0 || pen === null) return null;
  const ratio = Math.min(3, window.devicePixelRatio || 1);
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

/** As much of a text as has room; measuring each letter once is much faster than measuring texts. */
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
