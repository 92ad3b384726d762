/** The real program with the databases of the case studies: what it serves, exports, and says in the terminal. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContext } from '@playwright/test';
import { withDataOf } from '../tools/alone.mjs';
import { test as base } from './page';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The page as it was built here. */
export const BUILT = readFileSync(here('../dist/index.html'), 'utf8');

/**
 * Whether the page that was built here takes the place of the program's own: of use while one works on the page, as building the
 * program takes longer.
 */
export const IS_PAGE_OF_DIST = process.env.TRACEBRAID_PAGE === 'dist';

/** A case study whose database the repository carries. */
export interface Study {
  name: string;
  file: string;
  /** The groups that its README compares: as conditions of the terminal, and the same as an address has them. */
  conditions: [string, string];
  address: string;
  /** How many executions are slow. */
  slow: number;
  /** Frames of what slowed them, outermost first, with others between them. */
  cause: string[];
  /** The cause is one of so many contexts that differ most. */
  among: number;
}

/** Durations from and to a number of milliseconds, the first ones without their end. */
function study(name: string, fast: number, from: number, slow: number, among: number, cause: string[]): Study {
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

/** As `present/cli/tests/program/kept_studies.rs` has them. */
export const STUDIES: Study[] = [
  study('cpu-contention', 4, 5, 30, 1, [
    'compute_step',
    '[preempted]',
    '<controller>',
    'housekeeping',
    'rebuild_index',
  ]),
  study('disk-contention', 10, 20, 19, 2, ['handle_request', 'pread64()', '[block-device]', '<logger>', 'flush_log']),
  study('lock-contention', 10, 15, 13, 1, [
    'place_order',
    '[network]',
    '<postgres>',
    'ProcSleep',
    '<postgres>',
    'ExecScan',
  ]),
  study('server-sleep', 15, 25, 24, 1, ['write_line', '[network]', '<postgres>', 'XLogFlush', 'pg_usleep', '[timer]']),
];

/** Where the program is. Without one there is no test, and that is said. */
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

/** What the program writes. */
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
  /** None is infinite: there is no spread. */
  effect: number | null;
  chance: number;
}

/** What `tracebraid compare --format json` says. */
export interface Compared {
  kind: string;
  groups: { condition: string; executions: number }[];
  contexts: (Tested & { context: string[]; is_sure: boolean })[];
  figures: (Tested & { figure: string; unit: string; b_has_more: number })[];
  texts: ComparedText[];
}

export interface ComparedText {
  text: string;
  association: number;
  value: string | null;
  groups: { executions: number; share: number }[];
  chance: number;
}

/** A database of the system calls in the recordings of two case studies: these have texts, hosts, labels and threads that differ. */
export function callsOf(folder: string): string {
  const file = join(folder, 'calls.db');
  mkdirSync(folder, { recursive: true });
  for (const [name, ...more] of [
    ['cpu-contention'],
    ['lock-contention', '--append', '--label', '<img src=x onerror=alert(1)>'],
  ]) {
    execFileSync('tar', ['-xJf', here(`../../docs/case-studies/${name}/recording.tar.xz`), '-C', folder]);
    told('executions', 'build', join(folder, name), '--call', 'all : *', '-o', file, ...more);
  }
  return file;
}

/** Two groups of a database as the terminal compares them; all contexts and figures. */
export function compared(file: string, conditions: [string, string] | null, ...options: string[]): Compared {
  const chosen = conditions === null ? [] : ['--a', conditions[0], '--b', conditions[1]];
  return JSON.parse(told('compare', file, '--format', 'json', '--top', '0', ...chosen, ...options));
}

/** Whether these frames stand there in this order, with others between them. */
export function goes(frames: string[], way: string[]): boolean {
  let at = 0;
  for (const frame of frames) if (frame === way[at]) at++;
  return at === way.length;
}

/** An exported page: where the page that was built here is to be tested, with that one around the data. */
export function dressed(page: string): string {
  return IS_PAGE_OF_DIST ? withDataOf(BUILT, page) : page;
}

/** A server of a database. */
export interface Server {
  /** What it printed: with the token. */
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

/** Puts the page that was built here before the server's, if that is asked for; all else is the server's. */
export async function dress(context: BrowserContext, origin: string): Promise<void> {
  if (!IS_PAGE_OF_DIST) return;
  await context.route(
    (url) => url.origin === new URL(origin).origin && url.pathname === '/',
    async (route) => route.fulfill({ response: await route.fetch(), body: BUILT }),
  );
}

/** `view(study)` serves a study's database: one server for each, as long as the worker lives. */
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
