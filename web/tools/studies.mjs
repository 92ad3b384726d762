/**
 * Takes pictures of the page with two groups of a database: `node tools/studies.mjs PROGRAM DATABASE STATE OUT.png`. The data are those that
 * PROGRAM exports, the page is the one that was built here, STATE is what its address has behind `#`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium as browserType } from '@playwright/test';
import { withDataOf } from './alone.mjs';
import { ARGUMENTS, chromium } from './chromium.mjs';

const WIDTH = 1400;
const HEIGHT = 900;
const PAGE = new URL('../dist/index.html', import.meta.url);

const [program, database, state, out] = process.argv.slice(2);
if (out === undefined) throw new Error('usage: studies.mjs PROGRAM DATABASE STATE OUT.png');
const folder = mkdtempSync(join(tmpdir(), 'studies-'));
const browser = await browserType.launch({ executablePath: chromium(), args: ARGUMENTS });
try {
  const file = join(folder, 'page.html');
  execFileSync(program, ['view', database, '--export', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  writeFileSync(file, withDataOf(readFileSync(PAGE, 'utf8'), readFileSync(file, 'utf8')));
  const tab = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: 'light' });
  tab.on('pageerror', (error) => {
    throw error;
  });
  await tab.goto(`${pathToFileURL(file).href}#${state}`);
  await tab.waitForSelector('[data-flame]');
  await tab.waitForFunction(() => window.tracebraid.behind === 0);
  // The panel of the groups is drawn smaller by its corner, so that the flame graph is seen; what is sought is at the lower end of that.
  await tab.evaluate((height) => {
    const find = (name) => document.querySelector(name);
    const missing = find('.middle').getBoundingClientRect().bottom + 8 - height;
    if (missing > 0) find('.filters').style.height = `${find('.filters').offsetHeight - missing}px`;
    find('.graph').scrollTo(0, find('.graph').scrollHeight);
  }, HEIGHT);
  await tab.waitForTimeout(700);
  await tab.screenshot({ path: out });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
