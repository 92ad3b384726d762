/**
 * Makes packs with two populations of executions, one of them with planted causes. The same options
 * give the same bytes. As a program: `node tools/synthetic.mjs OUT.pack [executions] [metrics]
 * [contexts]`.
 */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Names that a hostile program could have. */
export const HOSTILE = [
  '</script><img src=x onerror=alert(1)>',
  '"><svg onload=alert(2)>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is the point
  '${alert(3)} {{alert(4)}} <!--',
  '\u202egnp.exe\u0000\u0007',
  'A'.repeat(5000),
  '__proto__',
];

/** Pseudo-random numbers (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const FUNCTION = 0;
const CALL = 1;
const THREAD = 2;
const REASON = 3;
const DETAIL = 4;

/** The tree: well-known contexts first, then as many others as asked for. */
function tree(size, next, isHostile) {
  const names = [];
  const index = new Map();
  const parent = [0];
  const kind = [255];
  const name = [0];
  const depth = [0];
  const nameOf = (text) => {
    if (!index.has(text)) {
      index.set(text, names.length);
      names.push(text);
    }
    return index.get(text);
  };
  nameOf('');
  const add = (at, of, text) => {
    parent.push(at);
    kind.push(of);
    name.push(nameOf(text));
    depth.push(depth[at] + 1);
    return parent.length - 1;
  };
  const chain = (at, frames) => frames.reduce((around, [of, text]) => add(around, of, text), at);
  const main = chain(0, [
    [FUNCTION, 'main'],
    [FUNCTION, 'serve_forever'],
    [FUNCTION, 'handle_request'],
  ]);
  const parse = add(main, FUNCTION, 'parse_headers');
  const render = add(main, FUNCTION, 'render');
  const query = add(main, FUNCTION, 'query_database');
  const read = chain(query, [
    [FUNCTION, 'Pager::fetch'],
    [CALL, 'pread64'],
  ]);
  const disk = chain(read, [
    [REASON, 'block-device'],
    [DETAIL, 'sda'],
  ]);
  const other = chain(disk, [
    [THREAD, 'backup'],
    [FUNCTION, 'copy_tree'],
  ]);
  const lock = chain(query, [
    [FUNCTION, 'Mutex::lock'],
    [CALL, 'futex'],
    [THREAD, 'compactor'],
    [FUNCTION, 'compact'],
  ]);
  const old = chain(render, [
    [FUNCTION, 'legacy_template'],
    [CALL, 'nanosleep'],
    [REASON, 'timer'],
  ]);
  const preempted = chain(parse, [
    [REASON, 'preempted'],
    [THREAD, 'cc1plus'],
  ]);
  const open = [main, parse, render, query, lock, other];
  if (isHostile) for (const text of HOSTILE) open.push(add(render, FUNCTION, text));
  const calls = ['read', 'write', 'futex', 'poll', 'epoll_wait', 'openat'];
  const reasons = ['timer', 'futex', 'pipe', 'network', 'block-device', 'runnable'];
  while (parent.length < size) {
    const at = open[Math.floor(next() * open.length)];
    const dice = next();
    const number = Math.floor(next() * Math.min(4000, size));
    if (depth[at] > 16) add(main, FUNCTION, `step_${number}`);
    else if (dice < 0.8) open.push(add(at, FUNCTION, `fn_${number}::call`));
    else if (dice < 0.93)
      chain(at, [
        [CALL, calls[number % calls.length]],
        [REASON, reasons[number % reasons.length]],
      ]);
    else
      open.push(
        chain(at, [
          [CALL, 'futex'],
          [THREAD, `worker-${number % 16}`],
          [FUNCTION, 'run'],
        ]),
      );
  }
  parent.length = kind.length = name.length = depth.length = Math.max(size, parent.length);
  return {
    names,
    parent,
    kind,
    name,
    depth,
    main,
    parse,
    render,
    query,
    read,
    disk,
    other,
    lock,
    old,
    preempted,
  };
}

const UNITS = ['ns', 'bytes', ''];

/** Makes a pack. `bytes` is the document, `pathOf(row)` the critical path of an execution. */
export function makePack({
  executions = 2000,
  metrics = 8,
  contexts = 300,
  entries = 15,
  seed = 1,
  hostile = true,
  paths = true,
  identifiers = false,
  title = hostile ? 'requests <b>&"\'.db' : 'requests.db',
} = {}) {
  const next = random(seed);
  const t = tree(Math.max(contexts, 40), next, hostile);
  const size = t.parent.length;
  const rows = new Uint32Array(executions + 1);
  const context =
    size <= 0xffff
      ? new Uint16Array(executions * (entries + 8))
      : new Uint32Array(executions * (entries + 8));
  const time = new Uint32Array(executions * (entries + 8));
  const cause = new Uint32Array(executions);
  const template = new Uint32Array(executions);
  const duration = new Uint32Array(executions);
  const waiting = new Uint32Array(executions);
  // Executions follow one of 200 sets of contexts.
  const templates = Array.from({ length: 200 }, () => {
    const chosen = new Set([t.main, t.parse, t.render, t.query, t.read]);
    while (chosen.size < Math.min(entries, size - 1))
      chosen.add(1 + Math.floor(next() * (size - 1)));
    for (const planted of [t.disk, t.other, t.lock, t.old - 2, t.old - 1, t.old, t.preempted])
      chosen.delete(planted);
    return [...chosen];
  });
  const log = (mean) =>
    Math.max(1, Math.round(mean * Math.exp((next() + next() + next() - 1.5) * 0.9)));
  const isWait = t.kind.map((kind) => kind >= THREAD);
  let z = 0;
  const row = new Map();
  for (let one = 0; one < executions; one++) {
    row.clear();
    template[one] = Math.floor(next() * templates.length);
    for (const at of templates[template[one]]) row.set(at, log(40000));
    const dice = next();
    cause[one] = dice < 0.05 ? 1 : dice < 0.08 ? 2 : 0;
    row.set(t.disk, log(cause[one] === 1 ? 9e6 : 150000));
    if (cause[one] === 1) row.set(t.other, log(6e6));
    if (cause[one] === 2) row.set(t.lock, log(5e6));
    if (cause[one] === 0 && next() < 0.6) row.set(t.old, log(180000));
    if (next() < 0.1) row.set(t.preempted, log(90000));
    for (const at of [...row.keys()].sort((a, b) => a - b)) {
      context[z] = at;
      time[z] = row.get(at);
      duration[one] += time[z];
      if (isWait[at]) waiting[one] += time[z];
      z++;
    }
    rows[one + 1] = z;
  }
  const sections = [];
  const section = (name, array) => sections.push({ name, array });
  const list = [{ name: 'duration_ns', unit: 'ns', description: 'from begin to end' }];
  section('metric:0', duration);
  for (let at = 1; at < metrics; at++) {
    const unit = at === 1 || at === 2 ? 'ns' : UNITS[at % 3];
    list.push(
      at === 1
        ? { name: 'waiting_ns', unit, description: 'the part of it in which nothing ran' }
        : at === 2
          ? { name: 'running_ns', unit, description: 'the part of it in which a thread ran' }
          : at === 5
            ? {
                name: 'switches',
                unit: '',
                description: 'how often a thread on the path left its CPU',
              }
            : {
                name:
                  hostile && at === 6 ? HOSTILE[0] : `metric_${at}${unit === '' ? '' : `_${unit}`}`,
                unit,
                description: `synthetic ${at}`,
              },
    );
    if (at % 7 === 6) {
      const values = new Float64Array(executions);
      for (let one = 0; one < executions; one++)
        values[one] = next() < 0.05 ? NaN : next() * 10 - 2;
      section(`metric:${at}`, values);
    } else {
      const values = new Uint32Array(executions);
      for (let one = 0; one < executions; one++) {
        if (at === 1) values[one] = waiting[one];
        else if (at === 2) values[one] = duration[one] - waiting[one];
        else if (at === 5) values[one] = Math.floor(next() * 6) + (cause[one] > 0 ? 3 : 0);
        else values[one] = (cause[one] === 1 ? 3 : 1) * (next() < 0.1 ? 0 : log(1000 * at));
      }
      section(`metric:${at}`, values);
    }
  }
  const begin = new Float64Array(executions);
  const source = new Uint16Array(executions);
  const thread = new Uint32Array(executions);
  const id = new Uint32Array(executions);
  let clock = 0;
  for (let one = 0; one < executions; one++) {
    clock += log(500000);
    begin[one] = clock;
    source[one] = next() < 0.5 ? 0 : 1;
    thread[one] = next() < 0.01 ? 0xffffffff : Math.floor(next() * 4);
    id[one] = one + 1;
  }
  section('id', id);
  section('begin', begin);
  section('source', source);
  section('thread', thread);
  const causes = ['none', 'disk', 'lock'];
  const routes = hostile ? ['/', '/login', ...HOSTILE] : ['/', '/login', '/search', '/cart'];
  const route = new Uint32Array(executions);
  for (let one = 0; one < executions; one++)
    route[one] = next() < 0.02 ? 0xffffffff : template[one] % routes.length;
  section('text:0', cause);
  section('text:1', route);
  // A different text in each execution.
  const own = identifiers ? Array.from(id, (one) => `request ${one}`) : [];
  if (identifiers)
    section(
      'text:2',
      id.map((one) => one - 1),
    );
  section('parent', Uint32Array.from(t.parent));
  section('kind', Uint8Array.from(t.kind));
  section('name', Uint32Array.from(t.name));
  section('rows', rows);
  section('context', context.subarray(0, z));
  section('time', time.subarray(0, z));
  const header = {
    version: 1,
    title,
    kind: 0,
    kinds: [
      { name: 'request', definition: 'request_begin .. request_end, key $evt.id', executions },
    ],
    executions,
    origin_ns: '1790000000000000000',
    metrics: list,
    texts: [
      { name: 'cause', values: causes },
      { name: 'route', values: routes },
      ...(identifiers ? [{ name: 'identifier', values: own }] : []),
    ],
    sources: [
      { path: '/traces/web-1/kernel', host: 'web-1', label: 'v1.2' },
      { path: '/traces/web-2/kernel', host: 'web-2', label: hostile ? HOSTILE[1] : 'v1.3' },
    ],
    threads: ['worker-1', 'worker-2', 'worker-3', hostile ? HOSTILE[0] : 'worker-4'],
    names: t.names,
    paths,
    sections: {},
  };
  const bytes = pack(header, sections);
  return {
    bytes,
    header,
    pathOf: (one) => pathOf(t, header, { rows, context, time, begin, source, thread, id }, one),
  };
}

const TYPES = new Map([
  [Uint8Array, 'u8'],
  [Uint16Array, 'u16'],
  [Uint32Array, 'u32'],
  [Float32Array, 'f32'],
  [Float64Array, 'f64'],
]);

/** Builds the document from header and sections. */
export function pack(header, sections) {
  let offset = 0;
  for (const { name, array } of sections) {
    header.sections[name] = [TYPES.get(array.constructor), offset, array.length];
    offset += (array.byteLength + 7) & ~7;
  }
  let json = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(((12 + json.length + 7) & ~7) - 12).fill(32);
  padded.set(json);
  json = padded;
  const bytes = new Uint8Array(12 + json.length + offset);
  bytes.set(new TextEncoder().encode('TBXPACK1'));
  new DataView(bytes.buffer).setUint32(8, json.length, true);
  bytes.set(json, 12);
  for (const { name, array } of sections) {
    const at = 12 + json.length + header.sections[name][1];
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
  }
  return bytes;
}

/** A critical path: the times of an execution in sequence. */
function pathOf(t, header, { rows, context, time, begin, source, thread, id }, one) {
  const own = thread[one] === 0xffffffff ? 'worker' : header.threads[thread[one]];
  const threads = [{ name: own, tid: 4711, host: 'web-1' }];
  const segments = [];
  let at = 0;
  for (let entry = rows[one]; entry < rows[one + 1]; entry++) {
    const here = context[entry];
    let actor = 0;
    let isReason = t.kind[here] === REASON || t.kind[here] === DETAIL;
    for (let frame = here; frame !== 0; frame = t.parent[frame]) {
      if (t.kind[frame] === REASON) isReason = true;
      if (t.kind[frame] !== THREAD) continue;
      const name = t.names[t.name[frame]];
      actor = isReason ? 0 : threads.findIndex((thread) => thread.name === name);
      if (actor < 0) actor = threads.push({ name, tid: 5000 + threads.length, host: 'web-1' }) - 1;
      break;
    }
    // In two segments, so that threads alternate.
    const first = Math.ceil(time[entry] / 2);
    segments.push([at, first, actor, here]);
    at += first;
    if (time[entry] > first) segments.push([at, time[entry] - first, actor, here]);
    at += time[entry] - first;
  }
  const start = BigInt(header.origin_ns) + BigInt(begin[one]);
  return {
    execution: id[one],
    begin_ns: String(start),
    source: source[one],
    threads,
    segments,
    command: `tracebraid critical-path ${header.sources[source[one]].path} --tid 4711 --begin ${start} --end ${start + BigInt(at)}`,
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [out, executions = '2000', metrics = '8', contexts = '300'] = process.argv.slice(2);
  if (out === undefined)
    throw new Error('node tools/synthetic.mjs OUT.pack [executions] [metrics] [contexts]');
  const { bytes } = makePack({ executions: +executions, metrics: +metrics, contexts: +contexts });
  writeFileSync(out, bytes);
}
