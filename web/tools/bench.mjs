/**
 * Measures the page in the browser: opening a pack, and each step of dragging brushes. `npm run
 * bench [executions] [metrics] [contexts] [texts]`; needs `npm run build` first. Exits 1 if it is
 * too slow. With `texts` each execution has a text of its own.
 */
import { loadavg } from 'node:os';
import { chromium as browserType } from '@playwright/test';
import { ARGUMENTS, chromium } from './chromium.mjs';
import { serve } from './serve.mjs';
import { makePack } from './synthetic.mjs';

const [executions = 1_000_000, metrics = 20, contexts = 5000] = process.argv
  .slice(2, 5)
  .map(Number);
const identifiers = process.argv[5] === 'texts';
const STEPS = 120;
const OPEN = 3000;
const STEP = 50;

const part = (values, at) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * at))];
const ms = (value) => `${value.toFixed(1)} ms`;

const made = makePack({
  executions,
  metrics,
  contexts,
  hostile: false,
  identifiers,
  title: 'bench.db',
});
const entries = made.header.sections.context[2];
console.log(
  `${executions} executions, ${metrics} metrics, ${contexts} contexts, ${(entries / executions).toFixed(1)} entries each, ${(made.bytes.length / 1e6).toFixed(0)} MB; load ${loadavg()[0].toFixed(2)}`,
);
const { address, stop } = await serve([made]);
const browser = await browserType.launch({ executablePath: chromium(), args: ARGUMENTS });
const opened = [];
let page;
for (let round = 0; round < 3; round++) {
  await page?.close();
  page = await browser.newPage({ viewport: { width: 1500, height: 1000 } });
  page.on('pageerror', (error) => console.log(error.stack));
  await page.goto(address);
  await page.waitForSelector('[data-flame]', { timeout: 120_000 });
  await page.waitForFunction(() => performance.getEntriesByName('drawn').length > 0);
  const marks = await page.evaluate(() =>
    Object.fromEntries(
      performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]),
    ),
  );
  opened.push(marks.drawn);
  console.log(
    `opened and drawn in ${ms(marks.drawn)} (bytes there at ${ms(marks.bytes)}, decoded ${ms(marks.decoded)}, ready ${ms(marks.ready)})`,
  );
}
await page.evaluate(() => {
  window.steps = [];
  const channel = new MessageChannel();
  let begun = 0;
  channel.port1.onmessage = () => {
    window.steps.push(performance.now() - begun);
    begun = 0;
  };
  // From the event to the frame that shows it.
  addEventListener(
    'pointermove',
    () => {
      if (begun !== 0) return;
      begun = performance.now();
      requestAnimationFrame(() => channel.port2.postMessage(0));
    },
    true,
  );
});
let isSlow = part(opened, 0.5) > OPEN;
const all = [];
async function drag(name, histogram, from, to, shouldKeep = false) {
  const lane = page.locator(`[data-histogram="${histogram}"]`);
  await lane.scrollIntoViewIfNeeded();
  const box = await lane.boundingBox();
  const x = (at) => box.x + 36 + at * (box.width - 44);
  await page.mouse.move(x(from[0]), box.y + 20);
  await page.mouse.down();
  const begun = Date.now();
  await page.mouse.move(x(from[1]), box.y + 20);
  await page.waitForTimeout(50);
  const first = Date.now() - begun;
  await page.evaluate(() => {
    window.steps.length = 0;
    window.tracebraid.frames.length = 0;
  });
  for (let step = 1; step <= STEPS; step++)
    await page.mouse.move(x(from[1] + ((to - from[1]) * step) / STEPS), box.y + 20);
  await page.mouse.up();
  await page.waitForFunction(() => window.tracebraid.behind === 0);
  const { steps, frames } = await page.evaluate(() => ({
    steps: window.steps,
    frames: window.tracebraid.frames,
  }));
  all.push(...steps);
  console.log(
    `${name.padEnd(52)} event to drawn: median ${ms(part(steps, 0.5))}, 95 % ${ms(part(steps, 0.95))}; work of a frame: median ${ms(part(frames, 0.5))}, 95 % ${ms(part(frames, 0.95))}; ${steps.length} steps, ${frames.length} frames; first ${first} ms`,
  );
  if (!shouldKeep) {
    await page.evaluate(() => window.tracebraid.reset());
    await page.waitForFunction(() => window.tracebraid.isSettled);
  }
  if (part(steps, 0.5) > STEP) isSlow = true;
}
await page.waitForFunction(() => window.tracebraid.behind === 0);
await drag('brush of A beside the groups that it opens with', 'a m.metric_3_ns', [0.0, 0.02], 0.4);
await drag('new brush, duration of B, through all', 'b m.duration_ns', [0.02, 0.04], 0.98);
await drag('new brush, metric 3 of A, through the bulk', 'a m.metric_3_ns', [0.0, 0.02], 0.4);
await drag('brush on duration of B', 'b m.duration_ns', [0.4, 0.41], 0.9, true);
await drag('and another one of B, metric 4', 'b m.metric_4_bytes', [0.0, 0.02], 0.9, true);
await drag('and one of A beside these', 'a m.duration_ns', [0.05, 0.07], 0.9);
console.log(
  `all steps: median ${ms(part(all, 0.5))}, 95 % ${ms(part(all, 0.95))} (to reach: ${STEP} ms); opened: median ${ms(part(opened, 0.5))} (to reach: ${OPEN} ms)`,
);
await browser.close();
stop();
if (isSlow) {
  console.log('TOO SLOW');
  process.exit(1);
}
