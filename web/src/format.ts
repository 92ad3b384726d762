/** Numbers and names as text. */

import { SURE } from './engine/compare';

const grouped = new Intl.NumberFormat('en');

/** A count: 1,234,567. */
export function count(value: number): string {
  return grouped.format(value);
}

/** Three (or `places`) significant digits, without an exponent where possible. */
export function digits(value: number, places = 3): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (size >= 1e15 || size < 1e-4) return value.toExponential(places - 1);
  if (size >= 1000) return grouped.format(Math.round(value));
  return String(Number(value.toPrecision(places)));
}

const TIMES: [number, string][] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];
const SIZES: [number, string][] = [
  [2 ** 40, 'TiB'],
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
  [1, 'B'],
];

/** The unit for numbers of a size, and its factor. */
export function unitFor(size: number, unit: string): [number, string] {
  const units = unit === 'ns' ? TIMES : unit === 'bytes' ? SIZES : null;
  if (units === null) return [1, ''];
  return units.find(([factor]) => size >= factor * 0.9995) ?? units[units.length - 1];
}

/** A number with its unit: `1.23 ms`. */
export function quantity(value: number, unit: string, places = 3): string {
  if (Number.isNaN(value)) return 'unknown';
  if (!Number.isFinite(value)) return digits(value);
  const [factor, name] = unitFor(Math.abs(value), unit);
  return name === '' ? digits(value, places) : `${digits(value / factor, places)} ${name}`;
}

/**
 * A range with its unit, with enough digits to distinguish its ends; one number if both are equal.
 */
export function span(low: number, high: number, unit: string): string {
  if (low === high) return quantity(low, unit);
  let ends = [''];
  for (let places = 3; places <= 15; places++) {
    ends = [low, high].map((value) => quantity(value, unit, places));
    if (ends[0] !== ends[1]) break;
  }
  return ends.join(' to ');
}

/** A quantity with a sign, for differences. */
export function signed(value: number, unit: string): string {
  const text = quantity(Math.abs(value), unit);
  return value > 0 ? `+${text}` : value < 0 ? `−${text}` : text;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return '0 %';
  const value = (100 * part) / whole;
  return value > 0 && value < 0.01
    ? '< 0.01 %'
    : `${Number(value.toPrecision(value >= 99.5 ? 4 : 2))} %`;
}

/** A probability; a power of ten if it is small. */
export function chance(value: number): string {
  if (Number.isNaN(value)) return 'not tested';
  if (value < 1e-30) return '< 10⁻³⁰';
  if (value < 0.001) {
    const exponent = Math.ceil(Math.log10(value) - 1e-9);
    return `< 10⁻${String(-exponent).replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)])}`;
  }
  return `${Number((100 * value).toPrecision(2))} %`;
}

/** A probability with its name: `p < 10⁻⁶`, `p = 0.5 %`. */
export function pText(value: number): string {
  const text = chance(value);
  return text.startsWith('<') ? `p ${text}` : `p = ${text}`;
}

/** A probability with a `~` before it if it is not significant, as in the terminal. */
export function marked(value: number): string {
  return value < SURE || Number.isNaN(value) ? chance(value) : `~ ${chance(value)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes control characters
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Appends an ellipsis, unless the text ends with one. */
function cutOff(text: string): string {
  return `${text.replace(/[\s…]+$/, '')}…`;
}

/**
 * A name from a trace that is safe to show: without invisible characters and characters that change
 * the direction of text, and with at most `most` characters.
 */
export function clean(name: string, most = 200): string {
  const cut = name.length > most ? cutOff(name.slice(0, most)) : name;
  return cut.replace(UNSEEN, '\ufffd');
}

/**
 * A name with at most `most` characters, shortened in the middle: beginnings and ends distinguish
 * names.
 */
export function middle(name: string, most: number): string {
  const whole = clean(name, name.length);
  if (whole.length <= most) return whole;
  const end = Math.floor((most - 1) / 2);
  return `${whole.slice(0, most - 1 - end)}…${whole.slice(whole.length - end)}`;
}

/**
 * The beginning of a text that fits into a width, with an ellipsis if it is cut. `widthOf` is the
 * width of a character.
 */
export function fittedTo(text: string, room: number, widthOf: (letter: string) => number): string {
  let width = 0;
  for (let at = 0; at < text.length; at++) {
    width += widthOf(text[at]);
    if (width <= room) continue;
    // The ellipsis is about two characters wide.
    const cut = cutOff(text.slice(0, Math.max(0, at - 1)));
    return cut.length < 3 ? '' : cut;
  }
  return text;
}

/** A time in nanoseconds since 1970 as date and time, with all nanoseconds. */
export function moment(ns: bigint): string {
  const ms = Number(ns / 1_000_000n);
  const date = new Date(ms);
  const rest = String(((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n).padStart(9, '0');
  if (Number.isNaN(date.getTime())) return `${ns} ns`;
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${rest} UTC`;
}

/** Round numbers from `low` to `high`, about `most` of them. */
export function ticks(low: number, high: number, unit: string, most: number): number[] {
  const span = high - low;
  if (!(span > 0) || most < 1) return [];
  const [factor] = unitFor(Math.max(Math.abs(low), Math.abs(high)), unit);
  const raw = span / factor / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step =
    (([1, 2, 5, 10].find((one) => one * power >= raw * 0.999) ?? 10) * power || raw) * factor;
  const found: number[] = [];
  for (
    let at = Math.ceil(low / step - 1e-9);
    at * step <= high + step * 1e-9 && found.length < 50;
    at++
  )
    found.push(at * step + 0);
  return found;
}

/**
 * Numbers for marks of a logarithmic axis: powers of ten (of two for bytes), thinned out or
 * subdivided to fit.
 */
export function logTicks(low: number, high: number, unit: string, most: number): number[] {
  const base = unit === 'bytes' ? 2 : 10;
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const found: number[] = [];
  if (base === 10 && 3 * (last - first + 2) <= most) {
    for (let at = first - 1; at <= last; at++) found.push(10 ** at, 2 * 10 ** at, 5 * 10 ** at);
    return found.filter((mark) => mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9));
  }
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(base ** at);
  return found;
}
