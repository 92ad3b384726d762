/**
 * Takes a screenshot of the page with two groups of a database: `node tools/studies.mjs PROGRAM
 * DATABASE STATE OUT.png`. PROGRAM exports the data, the page is that of `dist`, STATE is the part
 * of its address after `#`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium as browserType } from '@playwright/test';
import { withDataOf } from './alone.mjs';
import { ARGUMENTS, chromium } from './chromium.mjs';

const WIDTH = 1440;
const HEIGHT = 900;
const PAGE = new URL('../dist/index.html', import.meta.url);

const [program, database, state, out] = process.argv.slice(2);
if (out === undefined) throw new Error('usage: studies.mjs PROGRAM DATABASE STATE OUT.png');
const folder = mkdtempSync(join(tmpdir(), 'studies-'));
const browser = await browserType.launch({ executablePath: chromium(), args: ARGUMENTS });
try {
  const file = join(folder, 'page.html');
  execFileSync(program, ['view', database, '--export', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  writeFileSync(file, withDataOf(readFileSync(PAGE, 'utf8'), readFileSync(file, 'utf8')));
  const tab = await browser.newPage({
    viewport: { width: WIDTH, height: HEIGHT },
    colorScheme: 'light',
  });
  tab.on('pageerror', (error) => {
    throw error;
  });
  await tab.goto(`${pathToFileURL(file).href}#${state}`);
  await tab.waitForSelector('[data-flame]');
  await tab.waitForFunction(() => window.tracebraid.isSettled);
  // Zoomed to the context that the verdict names, so that a deep stack shows the cause.
  await tab.evaluate(() => {
    if (window.tracebraid.cause !== 0) window.tracebraid.zoomTo(window.tracebraid.cause);
  });
  await tab.waitForFunction(() => window.tracebraid.isSettled);
  await tab.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  await tab.screenshot({ path: out });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
