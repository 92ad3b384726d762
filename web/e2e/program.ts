/** Runs the real program with the databases of the case studies. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContext } from '@playwright/test';
import { withDataOf } from '../tools/alone.mjs';
import { test as base } from './page';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The page in `dist`. */
export const BUILT = readFileSync(here('../dist/index.html'), 'utf8');

/**
 * Whether the page in `dist` replaces that of the program, so that the program need not be built
 * again.
 */
export const IS_PAGE_OF_DIST = process.env.TRACEBRAID_PAGE === 'dist';

/** A case study whose database the repository carries. */
export interface Study {
  name: string;
  file: string;
  /** The groups that its README compares, as conditions of the terminal, and in an address. */
  conditions: [string, string];
  address: string;
  /** Number of slow executions. */
  slow: number;
  /** Frames of the cause, outermost first; others may be between them. */
  cause: string[];
  /** The cause is among the first N contexts of the list. */
  among: number;
}

/** A study with durations below `fast` and above `from` milliseconds. */
function study(
  name: string,
  fast: number,
  from: number,
  slow: number,
  among: number,
  cause: string[],
): Study {
  return {
    name,
    file: here(`../../docs/case-studies/${name}/requests.db`),
    conditions: [`duration < ${fast}ms`, `duration > ${from}ms`],
    address: `a=m.duration_ns:0:${fast * 1e6 - 1}&b=m.duration_ns:${from * 1e6 + 1}:1e12`,
    slow,
    cause,
    among,
  };
}

/** The same as in `present/cli/tests/program/kept_studies.rs`. */
export const STUDIES: Study[] = [
  study('cpu-contention', 4, 5, 30, 1, [
    'compute_step',
    '[preempted]',
    '<controller>',
    'housekeeping',
    'rebuild_index',
  ]),
  study('disk-contention', 10, 20, 19, 2, [
    'handle_request',
    'pread64()',
    '[block-device]',
    '<logger>',
    'flush_log',
  ]),
  study('lock-contention', 10, 15, 13, 1, [
    'place_order',
    '[network]',
    '<postgres>',
    'ProcSleep',
    '<postgres>',
    'ExecScan',
  ]),
  study('server-sleep', 15, 25, 24, 1, [
    'write_line',
    '[network]',
    '<postgres>',
    'XLogFlush',
    'pg_usleep',
    '[timer]',
  ]),
  study('device-contention', 6, 8, 20, 1, [
    'process_frame',
    'futex()',
    '[device]',
    '[render_preview]',
  ]),
];

/** Path of the program. A missing program is an error, not a skipped test. */
function program(): string {
  const built = process.env.CARGO_TARGET_DIR || here('../../target');
  const path = resolve(process.env.TRACEBRAID || join(built, 'debug/tracebraid'));
  if (!existsSync(path)) {
    throw new Error(
      `NO PROGRAM: there is no ${path}. Build it (scripts/web && cargo build), or set TRACEBRAID to one.`,
    );
  }
  return path;
}

/** Standard output of the program. */
export function told(...options: string[]): string {
  return execFileSync(program(), options, { encoding: 'utf8', maxBuffer: 1 << 28 });
}

export interface Sample {
  executions: number;
  present: number;
  mean: number;
  deviation: number;
}

export interface Tested {
  groups: [Sample, Sample];
  difference: number;
  interval: [number, number] | null;
  /** Null is infinite: there is no deviation. */
  effect: number | null;
  p: number;
}

/** Output of `tracebraid compare --format json`. */
export interface Compared {
  kind: string;
  groups: { condition: string; executions: number }[];
  contexts: (Tested & { context: string[]; is_significant: boolean })[];
  metrics: (Tested & { metric: string; unit: string; superiority: number })[];
  texts: ComparedText[];
}

export interface ComparedText {
  text: string;
  cramers_v: number;
  value: string | null;
  groups: { executions: number; share: number }[];
  p: number;
}

/**
 * A database of system calls from two recordings, whose texts, hosts, labels and threads differ.
 */
export function callsOf(folder: string): string {
  const file = join(folder, 'calls.db');
  mkdirSync(folder, { recursive: true });
  for (const [name, ...more] of [
    ['cpu-contention'],
    ['lock-contention', '--append', '--label', '<img src=x onerror=alert(1)>'],
  ]) {
    execFileSync('tar', [
      '-xJf',
      here(`../../docs/case-studies/${name}/recording.tar.xz`),
      '-C',
      folder,
    ]);
    told('executions', 'build', join(folder, name), '--call', 'all : *', '-o', file, ...more);
  }
  return file;
}

/** The terminal's comparison of two groups, with all contexts and metrics. */
export function compared(
  file: string,
  conditions: [string, string] | null,
  ...options: string[]
): Compared {
  const chosen = conditions === null ? [] : ['--a', conditions[0], '--b', conditions[1]];
  return JSON.parse(told('compare', file, '--format', 'json', '--top', '0', ...chosen, ...options));
}

/** Whether frames contain those of a path, in order. */
export function goes(frames: string[], way: string[]): boolean {
  let at = 0;
  for (const frame of frames) if (frame === way[at]) at++;
  return at === way.length;
}

/** An exported page; with `IS_PAGE_OF_DIST` its data in the page of `dist`. */
export function dressed(page: string): string {
  return IS_PAGE_OF_DIST ? withDataOf(BUILT, page) : page;
}

/** A server of a database. */
export interface Server {
  /** The printed address, with the token. */
  address: string;
  origin: string;
  token: string;
}

class Running implements Server {
  readonly origin: string;
  readonly token: string;

  constructor(
    readonly address: string,
    private readonly process: ChildProcess,
  ) {
    const url = new URL(address);
    this.origin = `${url.origin}/`;
    this.token = url.searchParams.get('token') ?? '';
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill();
    await ended;
  }
}

/** Starts `tracebraid view`, and waits for the address that it prints. */
function start(file: string): Promise<Running> {
  const child = spawn(program(), ['view', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((done, fail) => {
    let printed = '';
    let complaint = '';
    child.stderr.on('data', (text) => {
      complaint += text;
    });
    child.stdout.on('data', (text) => {
      printed += text;
      if (printed.includes('\n')) done(new Running(printed.trim(), child));
    });
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`the program ended (${code}): ${complaint}`)));
  });
}

/** With `IS_PAGE_OF_DIST`, serves the page of `dist` in place of the server's. */
export async function dress(context: BrowserContext, origin: string): Promise<void> {
  if (!IS_PAGE_OF_DIST) return;
  await context.route(
    (url) => url.origin === new URL(origin).origin && url.pathname === '/',
    async (route) => route.fulfill({ response: await route.fetch(), body: BUILT }),
  );
}

/** `view(study)` serves a study's database, with one server for each worker. */
export const test = base.extend<
  { view: (study: Pick<Study, 'file'>) => Promise<Server> },
  { running: (study: Pick<Study, 'file'>) => Promise<Server> }
>({
  running: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the pattern
    async ({}, use) => {
      const servers = new Map<string, Promise<Running>>();
      await use(({ file }) => {
        const server = servers.get(file) ?? start(file);
        servers.set(file, server);
        return server;
      });
      for (const server of servers.values()) await (await server).stop();
    },
    { scope: 'worker' },
  ],
  view: async ({ running, context }, use) => {
    await use(async (study) => {
      const server = await running(study);
      await dress(context, server.origin);
      return server;
    });
  },
});
