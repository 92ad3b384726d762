/** Source of the data: the page itself (if exported), or its server. */

import type { Progress } from '../engine/ready';
import type { Given } from './opening';
import { takeToken } from './token';
import { PIECE, Unpacking } from './unpack';

export interface Segment {
  begin: number;
  duration: number;
  thread: number;
  context: number;
}

/** The critical path of an execution. */
export interface Path {
  execution: number;
  begin: string;
  /** `tid` is null if the thread is unknown. */
  threads: { name: string; tid: number | null; host: string }[];
  segments: Segment[];
  command: string;
}

export interface DataSource {
  /** Whether the page was exported. */
  isAlone: boolean;
  pack(kind: number, progress: Progress): Promise<Given>;
  path(execution: number): Promise<Path>;
  /** The page with its data as one file. */
  exported(kind: number): Promise<Blob>;
}

const MAX_SEGMENTS = 5_000_000;

/** Validates a path: servers and files are untrusted. */
export function pathFrom(value: unknown): Path {
  const broken = (): never => {
    throw new Error('The critical path of this execution is damaged.');
  };
  const given = (value ?? broken()) as Record<string, unknown>;
  const { threads, segments } = given;
  if (!Array.isArray(threads) || !Array.isArray(segments) || segments.length > MAX_SEGMENTS)
    return broken();
  const whole = (one: unknown): number =>
    typeof one === 'number' && Number.isSafeInteger(one) && one >= 0 ? one : broken();
  return {
    execution: whole(given.execution),
    begin:
      typeof given.begin_ns === 'string' && /^-?\d{1,24}$/.test(given.begin_ns)
        ? given.begin_ns
        : broken(),
    threads: threads.map((one) => ({
      name: String(one?.name ?? ''),
      tid: typeof one?.tid === 'number' ? one.tid : null,
      host: String(one?.host ?? ''),
    })),
    segments: segments.map((one) => {
      if (!Array.isArray(one)) return broken();
      const thread = whole(one[2]);
      if (thread >= threads.length) return broken();
      return { begin: whole(one[0]), duration: whole(one[1]), thread, context: whole(one[3]) };
    }),
    command: typeof given.command === 'string' ? given.command : '',
  };
}

/** Base64 of a data block in this page. */
function letters(element: Element): string {
  const encoding = element.getAttribute('data-encoding');
  if (encoding !== 'gzip+base64')
    throw new Error(`The data in this page has the unknown encoding ${encoding}.`);
  return (element.textContent ?? '').trim();
}

/** Unpacked bytes of a data block in this page. */
async function block(element: Element): Promise<ArrayBuffer> {
  const [text, unpacking] = [letters(element), new Unpacking()];
  for (let at = 0; at < text.length; at += PIECE) unpacking.add(text.slice(at, at + PIECE));
  return unpacking.end();
}

/** The bytes of a response, with progress. */
async function bytesOf(answer: Response, progress: Progress): Promise<ArrayBuffer> {
  const length = Number(answer.headers.get('Content-Length') ?? 0);
  if (answer.body === null || !(length > 0) || answer.headers.has('Content-Encoding'))
    return answer.arrayBuffer();
  const bytes = new Uint8Array(length);
  let got = 0;
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    if (got + value.length > length)
      throw new Error('The response is longer than its Content-Length.');
    bytes.set(value, got);
    got += value.length;
    progress('Fetching', got / length);
  }
  if (got < length)
    throw new Error('The connection was closed before the end of the response. Reload the page.');
  return bytes.buffer;
}

function alone(pack: Element, paths: Element | null): DataSource {
  let known: Promise<Record<string, unknown>> | null = null;
  return {
    isAlone: true,
    pack: async () => letters(pack),
    async path(execution) {
      if (paths === null)
        throw new Error(
          'This page was exported without critical paths. To include them, export it with --paths N.',
        );
      known ??= block(paths).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
      const found = await known;
      const key = String(execution);
      if (!Object.hasOwn(found, key)) {
        throw new Error(
          'This page was exported with the critical paths of the longest executions only, without this one. To include more, export it with --paths N.',
        );
      }
      return pathFrom(found[key]);
    },
    exported: () => Promise.reject(new Error('This page is exported already: copy the file.')),
  };
}

async function failure(answer: Response): Promise<Error> {
  let said = '';
  try {
    const body: unknown = await answer.json();
    said = String((body as { error?: unknown }).error ?? '');
  } catch {
    // The body is not JSON: the status is the message.
  }
  if (answer.status === 401 || answer.status === 403) {
    said ||= 'The server refused the token. Open the address that the server printed.';
  }
  return new Error(said || `The server answered ${answer.status} ${answer.statusText}.`);
}

function served(): DataSource {
  const token = takeToken();
  const askWith = async (path: string, one: string): Promise<Response> => {
    try {
      return await fetch(path, { headers: { Authorization: `Bearer ${one}` }, cache: 'no-store' });
    } catch {
      throw new Error('The server does not respond. Start tracebraid view again.');
    }
  };
  const ask = async (path: string): Promise<Response> => {
    let refused: Response | null = null;
    for (const one of token.candidates()) {
      const answer = await askWith(path, one);
      if (answer.status === 401) {
        token.refuse(one);
        refused ??= answer;
        continue;
      }
      token.accept(one);
      if (!answer.ok) throw await failure(answer);
      return answer;
    }
    throw refused === null
      ? new Error('The token is missing. Open the address that the server printed.')
      : await failure(refused);
  };
  return {
    isAlone: false,
    pack: async (kind, progress) => bytesOf(await ask(`api/pack?kind=${kind}`), progress),
    path: async (execution) =>
      pathFrom(await (await ask(`api/path?execution=${execution}`)).json()),
    exported: async (kind) => (await ask(`api/export?kind=${kind}`)).blob(),
  };
}

export function openSource(): DataSource {
  const pack = document.querySelector('script#pack');
  return pack === null ? served() : alone(pack, document.querySelector('script#paths'));
}
