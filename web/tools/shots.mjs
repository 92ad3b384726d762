/** Takes screenshots of the page, to look at: `node tools/shots.mjs FOLDER`. */
import { mkdirSync } from 'node:fs';
import { chromium as browserType } from '@playwright/test';
import { ARGUMENTS, chromium } from './chromium.mjs';
import { serve } from './serve.mjs';
import { makePack } from './synthetic.mjs';

const folder = process.argv[2] ?? 'shots';
mkdirSync(folder, { recursive: true });
const { address, stop } = await serve([
  makePack({ executions: 20000, metrics: 12, contexts: 400, hostile: false }),
]);
const browser = await browserType.launch({ executablePath: chromium(), args: ARGUMENTS });
for (const scheme of ['light', 'dark']) {
  const page = await browser.newPage({
    viewport: { width: 1500, height: 1050 },
    colorScheme: scheme,
  });
  page.on('console', (message) => console.log(scheme, message.type(), message.text()));
  page.on('pageerror', (error) => console.log(scheme, error.stack));
  const shot = async (name, options = {}) => {
    await page.waitForFunction(() => window.tracebraid.isSettled);
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await page.screenshot({ path: `${folder}/${scheme}-${name}.png`, ...options });
  };
  await page.goto(address);
  await page.waitForSelector('[data-flame]');
  await shot('start');
  await page.click('button:has-text("Slowest 1 %")');
  await page.mouse.move(700, 20);
  await shot('slow');
  await page.hover('[data-flame] canvas', { position: { x: 500, y: 130 } });
  await shot('tip');
  await page.click('[data-ranked] >> nth=0');
  await page.keyboard.press('p');
  await shot('zoomed');
  await page.keyboard.press('Escape');
  await page.fill('#search', 'query');
  await shot('search');
  await page.fill('#search', '');
  await page.click('button:text-is("B")');
  await shot('mode-b');
  await page.click('button:text-is("Difference")');
  await shot('full', { fullPage: true });
  await page.click('.list.side-b [data-execution] >> nth=0');
  await page.waitForSelector('[data-timeline]');
  await page.hover('[data-timeline] canvas', { position: { x: 600, y: 34 } });
  await shot('timeline');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await shot('help');
  await page.keyboard.press('Escape');
  for (const [width, height] of [
    [1440, 900],
    [1024, 768],
    [390, 844],
  ]) {
    await page.setViewportSize({ width, height });
    await page.evaluate(() => scrollTo(0, 0));
    await shot(`${width}`);
    await shot(`${width}-full`, { fullPage: true });
  }
  await page.close();
}
await browser.close();
stop();
