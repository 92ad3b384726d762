/**
 * Decodes a pack: all executions of one kind, as columns of numbers in one binary document
 * (docs/view-formats.md).
 *
 * Packs are untrusted. Each length, offset and index is checked once here, so that users of a
 * `Pack` may index without checks. Inconsistent bytes are a `PackError` with the reason.
 */

/** The reason why bytes are not a valid pack. */
export class PackError extends Error {
  override name = 'PackError';
}

/** Numbers of executions; NaN is unknown. */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;
export type Indices = Uint16Array | Uint32Array;

/** Code of executions without the text. */
export const NONE = 0xffffffff;

export interface Metric {
  name: string;
  /** `ns`, `bytes`, or empty. */
  unit: string;
  description: string;
  values: Numbers;
}

/** A captured text. */
export interface Text {
  name: string;
  values: string[];
  codes: Uint32Array;
}

export interface Source {
  path: string;
  /** Null if it is unknown. */
  host: string | null;
  label: string;
}

export interface Kind {
  name: string;
  definition: string;
  executions: number;
}

/** Kinds of frames of a calling context. */
export enum FrameKind {
  Function = 0,
  Call = 1,
  Thread = 2,
  Reason = 3,
  Detail = 4,
  Root = 255,
}

/**
 * The union of the calling contexts of all executions; 0 is the root, parents come before their
 * children.
 */
export interface Contexts {
  count: number;
  parent: Uint32Array;
  kind: Uint8Array;
  name: Uint32Array;
}

/**
 * Entries of execution `i` are those from `rows[i]` to `rows[i + 1]`: a context with its own time
 * in nanoseconds.
 */
export interface Entries {
  rows: Uint32Array;
  context: Indices;
  time: Uint32Array | Float64Array;
}

export interface Pack {
  title: string;
  kind: number;
  kinds: Kind[];
  executions: number;
  origin: bigint;
  metrics: Metric[];
  texts: Text[];
  sources: Source[];
  threads: string[];
  names: string[];
  paths: boolean;
  id: Uint32Array;
  begin: Float64Array;
  source: Uint16Array;
  thread: Uint32Array;
  contexts: Contexts;
  entries: Entries;
}

const MAGIC = 'TBXPACK1';
/** Deeper trees are damage: no recorded stack is as deep. */
const MAX_DEPTH = 4096;
const TYPES = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

type Json = Record<string, unknown>;

function fail(text: string): never {
  throw new PackError(`This is not a valid pack: ${text}.`);
}

function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    fail(`${what} is not an object`);
  return value as Json;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) fail(`${what} is not a list`);
  return value;
}

function text(value: unknown, what: string): string {
  if (typeof value !== 'string') fail(`${what} is not a string`);
  return value;
}

function count(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    fail(`${what} is not a count`);
  return value;
}

function texts(value: unknown, what: string): string[] {
  return list(value, what).map((one) => text(one, `one of ${what}`));
}

/** Sections by name, checked against the available bytes. */
class Sections {
  constructor(
    private readonly buffer: ArrayBuffer,
    private readonly base: number,
    private readonly table: Json,
  ) {}

  numbers(name: string, length: number | null, allowed: (keyof typeof TYPES)[]): Numbers {
    if (!Object.hasOwn(this.table, name)) fail(`section ${name} is missing`);
    const [type, offset, elements, ...more] = list(this.table[name], `section ${name}`);
    if (more.length > 0) fail(`section ${name} has more than three elements`);
    const known = allowed.find((one) => one === type);
    if (known === undefined) fail(`section ${name} is of type ${String(type).slice(0, 20)}`);
    const at = this.base + count(offset, `the offset of section ${name}`);
    const size = count(elements, `the length of section ${name}`);
    if (at % 8 !== 0) fail(`section ${name} is not aligned to 8 bytes`);
    if (length !== null && size !== length)
      fail(`section ${name} has ${size} elements instead of ${length}`);
    const View = TYPES[known];
    if (at + size * View.BYTES_PER_ELEMENT > this.buffer.byteLength)
      fail(`section ${name} exceeds the file`);
    return new View(this.buffer, at, size);
  }

  u32(name: string, length: number | null): Uint32Array {
    return this.numbers(name, length, ['u32']) as Uint32Array;
  }
}

/** Reads the JSON header and the offset of the sections. */
function head(buffer: ArrayBuffer): { header: Json; base: number } {
  if (buffer.byteLength < 12) fail('it is too short');
  const bytes = new Uint8Array(buffer);
  if (String.fromCharCode(...bytes.subarray(0, 8)) !== MAGIC)
    fail(`it does not begin with ${MAGIC}`);
  const length = new DataView(buffer).getUint32(8, true);
  if (length > buffer.byteLength - 12) fail('its header exceeds the file');
  let header: unknown;
  try {
    header = JSON.parse(
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(12, 12 + length)),
    );
  } catch {
    fail('its header is not JSON');
  }
  return { header: object(header, 'the header'), base: 12 + length };
}

function below(codes: Numbers, limit: number, none: number | null, what: string): void {
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at];
    if (code >= limit && code !== none)
      fail(`${what} of execution ${at} is ${code}, the limit is ${limit}`);
  }
}

function contextsOf(sections: Sections, names: number): Contexts {
  const parent = sections.u32('parent', null);
  const size = parent.length;
  const kind = sections.numbers('kind', size, ['u8']) as Uint8Array;
  const name = sections.u32('name', size);
  if (size === 0 || parent[0] !== 0) fail('context 0 is not the root');
  const depth = new Uint16Array(size);
  for (let at = 1; at < size; at++) {
    if (parent[at] >= at) fail(`the parent of context ${at} does not come before the context`);
    if (kind[at] > FrameKind.Detail) fail(`context ${at} has the unknown kind ${kind[at]}`);
    if (name[at] >= names) fail(`context ${at} has a name that does not exist`);
    depth[at] = depth[parent[at]] + 1;
    if (depth[at] > MAX_DEPTH) fail(`context ${at} is deeper than ${MAX_DEPTH}`);
  }
  return { count: size, parent, kind, name };
}

function entriesOf(sections: Sections, executions: number, contexts: number): Entries {
  const rows = sections.u32('rows', executions + 1);
  const context = sections.numbers('context', null, ['u16', 'u32']) as Indices;
  const time = sections.numbers('time', context.length, ['u32', 'f64']) as
    | Uint32Array
    | Float64Array;
  if (rows[0] !== 0 || rows[executions] !== context.length) fail('rows do not cover all entries');
  for (let row = 0; row < executions; row++) {
    const end = rows[row + 1];
    if (end < rows[row] || end > context.length)
      fail(`the row of execution ${row} ends before it begins`);
    let last = -1;
    for (let at = rows[row]; at < end; at++) {
      const here = context[at];
      if (here <= last || here >= contexts) fail(`contexts of execution ${row} are not in order`);
      const value = time[at];
      if (!(value > 0 && value <= Number.MAX_SAFE_INTEGER))
        fail(`a time of execution ${row} is ${value}`);
      last = here;
    }
  }
  return { rows, context, time };
}

function metricsOf(header: Json, sections: Sections, executions: number): Metric[] {
  return list(header.metrics, 'metrics').map((one, at) => {
    const metric = object(one, `metric ${at}`);
    return {
      name: text(metric.name, `the name of metric ${at}`),
      unit: text(metric.unit ?? '', `the unit of metric ${at}`),
      description: text(metric.description ?? '', `the description of metric ${at}`),
      values: sections.numbers(`metric:${at}`, executions, ['u8', 'u16', 'u32', 'f32', 'f64']),
    };
  });
}

function textsOf(header: Json, sections: Sections, executions: number): Text[] {
  return list(header.texts ?? [], 'texts').map((one, at) => {
    const captured = object(one, `text ${at}`);
    const values = texts(captured.values, `the values of text ${at}`);
    const codes = sections.u32(`text:${at}`, executions);
    below(codes, values.length, NONE, `text ${at}`);
    return { name: text(captured.name, `the name of text ${at}`), values, codes };
  });
}

function originOf(value: unknown): bigint {
  const digits = text(value ?? '0', 'origin_ns');
  if (!/^-?\d{1,24}$/.test(digits)) fail('origin_ns is not a number');
  return BigInt(digits);
}

/** Decodes a pack, or throws a `PackError`. Arrays are views of the buffer; nothing is copied. */
export function decodePack(buffer: ArrayBuffer): Pack {
  const { header, base } = head(buffer);
  if (header.version !== 1)
    fail(`its version is ${String(header.version).slice(0, 20)}, this page supports version 1`);
  const sections = new Sections(buffer, base, object(header.sections, 'sections'));
  const executions = count(header.executions, 'executions');
  const sources = list(header.sources, 'sources').map((one, at) => {
    const source = object(one, `source ${at}`);
    return {
      path: text(source.path, `the path of source ${at}`),
      host:
        source.host === null || source.host === undefined
          ? null
          : text(source.host, `the host of source ${at}`),
      label: text(source.label ?? '', `the label of source ${at}`),
    };
  });
  const kinds = list(header.kinds, 'kinds').map((one, at) => {
    const kind = object(one, `kind ${at}`);
    return {
      name: text(kind.name, `the name of kind ${at}`),
      definition: text(kind.definition ?? '', `the definition of kind ${at}`),
      executions: count(kind.executions ?? 0, `the executions of kind ${at}`),
    };
  });
  const threads = texts(header.threads, 'threads');
  const names = texts(header.names, 'names');
  const source = sections.numbers('source', executions, ['u16']) as Uint16Array;
  below(source, sources.length, null, 'the source');
  const thread = sections.u32('thread', executions);
  below(thread, threads.length, NONE, 'the thread');
  const contexts = contextsOf(sections, names.length);
  return {
    title: text(header.title ?? '', 'the title'),
    kind: count(header.kind ?? 0, 'the kind'),
    kinds,
    executions,
    origin: originOf(header.origin_ns),
    metrics: metricsOf(header, sections, executions),
    texts: textsOf(header, sections, executions),
    sources,
    threads,
    names,
    paths: header.paths === true,
    id: sections.u32('id', executions),
    begin: sections.numbers('begin', executions, ['f64']) as Float64Array,
    source,
    thread,
    contexts,
    entries: entriesOf(sections, executions, contexts.count),
  };
}
