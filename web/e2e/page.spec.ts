import { writeFileSync } from 'node:fs';
import { makePack } from '../tools/synthetic.mjs';
import {
  brush,
  calm,
  EXECUTIONS,
  expect,
  hash,
  laneOf,
  open,
  openAll,
  picture,
  size,
  test,
  valueBox,
  withoutTimes,
} from './page';

test('brushes change the other histograms, the flame graph, lists and the address while they are dragged', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  expect(await size(page, 'A')).toBe(EXECUTIONS);
  const other = page.locator('[data-histogram="b m.waiting_ns"]');
  const before = await picture(other);
  const flame = page.locator('[data-flame] canvas');
  const graph = await picture(flame);
  const { x, y } = await laneOf(page, 'b m.duration_ns');
  await page.mouse.move(x(0.6), y);
  await page.mouse.down();
  await page.mouse.move(x(0.99), y, { steps: 5 });
  await expect(page.locator('[data-size=B]')).not.toHaveText('3,000');
  // Still dragging: all has changed already.
  await expect.poll(() => picture(other)).not.toBe(before);
  await expect.poll(() => picture(flame)).not.toBe(graph);
  await page.mouse.up();
  await calm(page);
  const chosen = await size(page, 'B');
  expect(chosen).toBeGreaterThan(50);
  expect(chosen).toBeLessThan(600);
  expect(await size(page, 'A')).toBe(EXECUTIONS);
  await expect(page.locator('.list.side-b h3')).toContainText(`${chosen} executions`);
  expect(hash(page)).toContain('b=m.duration_ns');
  // The range has a lower end.
  const low = Number(/b=m\.duration_ns%3A([\d.e+]+)/.exec(hash(page))![1]);
  expect(low).toBeGreaterThan(1e6);
  // Resizing the range, and clicking outside it.
  await brush(page, 'b m.duration_ns', 0.8, 0.7);
  expect(await size(page, 'B')).not.toBe(chosen);
  const again = await laneOf(page, 'b m.duration_ns');
  await page.mouse.click(again.x(0.1), again.y);
  await calm(page);
  expect(await size(page, 'B')).toBe(EXECUTIONS);
});

test('the automatic groups find the planted cause, and a click goes there', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  expect(await size(page, 'B')).toBe(30);
  const first = page.locator('[data-ranked]').first();
  await expect(first).toContainText(/sda|copy_tree/);
  await first.click();
  await calm(page);
  await expect(page.locator('.crumbs [aria-current=true]')).toContainText(/sda|copy_tree/);
  expect(hash(page)).toContain('zoom=');
  await expect(page.locator('.crumbs')).toContainText('query_database');
});

test('figures beyond the first ones are shown when they are asked for', async ({
  page,
  openPack,
}) => {
  await openPack(makePack({ executions: 1000, contexts: 60, metrics: 25 }));
  const rows = page.locator(
    'table[aria-label="Metrics by how well they separate the groups"] tbody tr',
  );
  const button = page.locator('.figures .more');
  await expect(rows).toHaveCount(10);
  await expect(button).toHaveText(/^\d+ more$/);
  const left = Number.parseInt(await button.innerText(), 10);
  expect(left).toBeGreaterThan(0);
  await rows.last().locator('button').focus();
  await page.keyboard.press('Tab');
  await expect(button).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(rows).toHaveCount(10 + left);
  await expect(button).toHaveText('Fewer');
  await expect(button).toHaveAttribute('aria-expanded', 'true');
  await expect(button).toBeFocused();
  await page.keyboard.press('Space');
  await expect(rows).toHaveCount(10);
  await expect(button).toHaveText(`${left} more`);
});

test('texts that tell the groups apart are listed, and a click leaves what tells most', async ({
  page,
  alone,
  context,
}) => {
  await open(page, alone);
  const rows = page.locator('table[aria-label="Texts that differ"] tbody tr');
  const [name, most] = [
    rows.first().locator('button').first(),
    rows.first().locator('button').nth(1),
  ];
  await expect(name).toHaveText('cause');
  await expect(most).toHaveText('none');
  const cells = rows.first().locator('td');
  await expect(cells.nth(2)).toHaveText('0 %');
  await expect(cells.nth(3)).toHaveText(/^(0\.9\d|1\.00)$/);
  await expect(cells.last()).toHaveText(/^< 10⁻/);
  // Texts that are not significant are pale and follow.
  for (const row of (await rows.all()).slice(1)) await expect(row).toHaveClass('doubtful');
  // Texts are below the metrics; a link leads there.
  await page.locator('.figures button', { hasText: /^1 text also differs$/ }).click();
  await expect(name).toBeFocused();
  await expect(name).toBeInViewport();
  // The name goes to the list of texts.
  await name.press('Enter');
  await expect(page.locator('[data-checklist="t.cause"] input').first()).toBeFocused();
  // With all executions in A a click filters A by the value.
  await page.goto('about:blank');
  await open(page, `${alone}#b=m.duration_ns:5000000:1e12`);
  await expect(most).toHaveText('none');
  await expect(most).toHaveAttribute('title', /in A$/);
  const sizes = async () => [await size(page, 'A'), await size(page, 'B')];
  const before = await sizes();
  await most.press('Enter');
  await calm(page);
  await expect(most).toHaveAttribute('aria-pressed', 'true');
  const after = await sizes();
  expect(after[0]).toBeLessThan(before[0]);
  expect(after[0]).toBeGreaterThan(0);
  expect(after[1]).toBe(before[1]);
  await expect(page.locator('.head.side-a .chips')).toContainText('cause: none');
  await expect(cells.nth(1)).toHaveText('100 %');
  // The filter is in the address.
  const copy = await context.newPage();
  await open(copy, page.url());
  expect([await size(copy, 'A'), await size(copy, 'B')]).toEqual(after);
  await copy.close();
  await most.click();
  await calm(page);
  expect(await sizes()).toEqual(before);
  await expect(most).toHaveAttribute('aria-pressed', 'false');
  await page.click('button:text-is("Reset")');
  await calm(page);
  await expect(rows).toHaveCount(0);
});

test('tables of differences are whole on a telephone, and links lead to them', async ({
  page,
  alone,
}) => {
  await page.setViewportSize({ width: 1280, height: 1000 });
  await open(page, alone);
  await calm(page);
  const table = page.locator('table[aria-label="Texts that differ"]');
  const link = page.locator('.figures button', { hasText: /^1 text also differs$/ });
  await link.click();
  await expect(table.locator('tbody tr').first()).toBeInViewport({ ratio: 1 });
  await page.setViewportSize({ width: 360, height: 740 });
  await calm(page);
  // Each column can be seen: the section scrolls as far as its tables are wide.
  const { room, wide, moves } = await page.locator('.figures').evaluate((section) => ({
    room: section.clientWidth,
    wide: Math.max(...[...section.querySelectorAll('table')].map((of) => of.scrollWidth)),
    moves: getComputedStyle(section).overflowX === 'auto' ? section.scrollWidth : 0,
  }));
  expect(moves).toBeGreaterThanOrEqual(Math.min(wide, room));
  expect(moves).toBeGreaterThanOrEqual(wide);
});

test('a text for each execution neither slows the page nor tells anything', async ({
  page,
  openPack,
}) => {
  await openPack(makePack({ executions: 200_000, contexts: 60, identifiers: true }));
  const table = page.locator('table[aria-label="Texts that differ"]');
  await expect(table).toContainText('cause');
  await expect(table).not.toContainText('identifier');
  const list = page.locator('[data-checklist="t.identifier"]');
  await expect(list).toContainText('199,940 more values; search to find them');
  await list.locator('input[type=search]').fill('request 123456');
  await valueBox(page, 'b', 'request 123456', 't.identifier').check();
  await calm(page);
  expect(await size(page, 'B')).toBeLessThanOrEqual(1);
});

test('infinite and very large numbers are told apart by ranks, and harm nothing', async ({
  page,
  openPack,
}) => {
  const pack = makePack({ executions: 1000, contexts: 60, metrics: 28 });
  const base = 12 + new DataView(pack.bytes.buffer).getUint32(8, true);
  const durations = new Uint32Array(
    pack.bytes.buffer,
    base + pack.header.sections['metric:0'][1],
    1000,
  );
  // Columns of doubles: some infinite, all infinite, very large.
  const wanted: [number, (duration: number, one: number) => number][] = [
    [6, (duration, one) => (one % 3 === 0 ? Infinity : one % 3 === 1 ? -Infinity : duration)],
    [13, (duration) => (duration > 5e6 ? Infinity : -Infinity)],
    [20, (duration) => duration * 1e300],
    [27, (duration, one) => (one % 5 === 0 ? 1.7e308 : -1.7e308) * (duration > 5e6 ? 1 : 0.5)],
  ];
  for (const [metric, of] of wanted) {
    const values = new Float64Array(
      pack.bytes.buffer,
      base + pack.header.sections[`metric:${metric}`][1],
      1000,
    );
    values.forEach((_, one) => {
      values[one] = of(durations[one], one);
    });
  }
  await openPack(pack);
  await page.locator('.figures .more').click();
  // B always has more; the means are unknown.
  for (const name of ['metric 13', 'metric 20']) {
    const cells = page.locator('.figures tbody tr', { hasText: name }).locator('td');
    await expect(cells.nth(1)).toHaveText('100 %');
    await expect(cells.last()).toHaveText(/^< 10⁻/);
  }
  const infinite = page.locator('.figures tbody tr', { hasText: 'metric 13' });
  await expect(infinite).not.toHaveClass('doubtful');
  await expect(infinite.locator('td').nth(3)).toHaveText('-');
  await expect(page.locator('.figures')).not.toContainText(/NaN|∞|unknown/);
  for (const key of ['m.metric_20', 'm.metric_27']) {
    const histogram = page.locator(`[data-histogram^="b ${key}"]`);
    await brush(page, (await histogram.getAttribute('data-histogram'))!, 0.1, 0.9);
    await histogram.press('Shift+ArrowRight');
    await histogram.press('End');
    await page.locator('[aria-label^="log axis of metric 2"]').first().click();
    await calm(page);
    await expect(histogram).not.toHaveAttribute('aria-valuetext', /NaN|∞|unknown/);
    await expect(histogram).toHaveAttribute('aria-valuenow', /^\d+$/);
  }
  for (const of of ['.filters', '.heads'])
    await expect(page.locator(of)).not.toContainText(/NaN|∞|unknown/);
  await page.click('button:text-is("Reset")');
  const lists = page.locator('.executions select');
  for (const at of [6, 13, 20, 27]) {
    await lists.selectOption({ index: at });
    await calm(page);
    await expect(page.locator('.list.side-b td:nth-child(3)').first()).toHaveText(
      at < 20 ? '∞' : /e\+\d{3}/,
    );
  }
  await page.locator('.list.side-b [data-execution]').first().click();
  await page.waitForSelector('[data-timeline]');
  await expect(page.locator('body')).not.toContainText('NaN');
});

test('the graph scrolls to a frame that is deeper than it is high', async ({ page, alone }) => {
  await page.setViewportSize({ width: 1500, height: 160 });
  await open(page, alone);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  const graph = page.locator('.graph');
  const place = () =>
    graph.evaluate(({ scrollTop, clientHeight }) => ({ scrollTop, clientHeight }));
  expect((await place()).scrollTop).toBe(0);
  await page.locator('[data-ranked]').first().click();
  await calm(page);
  const deep = await place();
  const depth = (await page.locator('.crumbs').innerText()).split('›').length - 1;
  const top = 19 * depth;
  expect(top).toBeGreaterThan(deep.clientHeight);
  expect(top).toBeGreaterThanOrEqual(deep.scrollTop);
  expect(top + 19).toBeLessThanOrEqual(deep.scrollTop + deep.clientHeight);
  await page.keyboard.press('Escape');
  await calm(page);
  expect((await place()).scrollTop).toBe(0);
});

test('what is not significant stands in its place, marked and pale', async ({ page, alone }) => {
  await open(page, alone);
  // One execution with a planted cause is too few for significance, though it is the greatest
  // difference.
  const duration = await page.evaluate(() => {
    const { pack, table } = window.tracebraid;
    const { values, codes } = pack.texts.find(({ name }) => name === 'cause')!;
    return table.numbers[0].values[codes.indexOf(values.indexOf('lock'))];
  });
  await page.goto('about:blank');
  await open(page, `${alone}#b=m.duration_ns:${duration}:${duration}`);
  expect(await size(page, 'B')).toBe(1);
  const table = page.locator('table[aria-label="Contexts that differ most"]');
  await expect(table.locator('[data-ranked]').first()).toBeVisible();
  const rows = await table.locator('tbody tr').evaluateAll((all) =>
    all.map((row) => ({
      isPale: row.classList.contains('doubtful'),
      cells: [...row.children].map((cell) => cell.textContent ?? ''),
    })),
  );
  const amount = (text: string) =>
    Math.abs(Number(text.replace(/[^\d.]/g, ''))) * (/ms/.test(text) ? 1e6 : 1e3);
  const sizes = rows.map(({ cells }) => amount(cells[3]));
  expect(sizes).toEqual([...sizes].sort((one, other) => other - one));
  expect(rows[0].isPale).toBe(true);
  expect(rows[0].cells[0]).toMatch(/^(compact|futex|compactor)/);
  for (const { isPale, cells } of rows) expect(cells[4].startsWith('~')).toBe(isPale);
  await expect(page.locator('.ranking')).toContainText('ignificant');
});

test('contexts in the list are told apart, and tell their whole way', async ({ page, alone }) => {
  await open(page, alone);
  const rows = page.locator('[data-ranked]');
  const texts = await rows.allInnerTexts();
  expect(texts.length).toBeGreaterThan(2);
  expect(new Set(texts).size).toBe(texts.length);
  const disk = rows.filter({ hasText: 'sda' }).first();
  await expect(disk).toHaveAttribute(
    'title',
    'main › serve_forever › handle_request › query_database › Pager::fetch › pread64() › block-device › sda',
  );
});

test('the flame graph as a table is a tree, through which keys go', async ({ page, alone }) => {
  await open(page, alone);
  await page.locator('.flame summary').click();
  const tree = page.getByRole('treegrid', { name: 'The flame graph as a tree' });
  const lines = await tree.locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => ({
      level: Number(row.getAttribute('aria-level')),
      name: row.querySelector('td button')?.textContent ?? '',
      within: row.querySelector('td:nth-child(2)')?.textContent ?? '',
    })),
  );
  expect(lines.length).toBeGreaterThan(50);
  expect(lines[0]).toEqual({ level: 1, name: 'all executions', within: '' });
  const way: string[] = [];
  for (const { level, name, within } of lines) {
    expect(level).toBeLessThanOrEqual(way.length + 1);
    way.length = level - 1;
    expect(within).toBe(way[level - 2] ?? '');
    way.push(name);
    if (name === 'sda' && way.includes('Pager::fetch')) {
      expect(way.slice(1, 5)).toEqual([
        'main',
        'serve_forever',
        'handle_request',
        'query_database',
      ]);
    }
  }
  expect(lines.some(({ name }) => name === 'sda')).toBe(true);
  const focused = () =>
    page.evaluate(() => document.activeElement?.querySelector('td button')?.textContent ?? '');
  await tree.locator('tbody tr').first().focus();
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
  expect(await focused()).toBe('handle_request');
  await page.keyboard.press('ArrowLeft');
  expect(await focused()).toBe('serve_forever');
  await page.keyboard.press('End');
  expect(await focused()).toBe(lines.at(-1)?.name);
  await page.keyboard.press('Home');
  expect(await focused()).toBe('all executions');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await calm(page);
  await expect(page.locator('.crumbs [aria-current=true]')).toHaveText('main');
});

test('histograms as tables have a line for each of a few whole numbers', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  const table = page.locator('[data-rows="m.switches"]');
  const cells = table.locator('td:nth-child(3)');
  const labels = await table.locator('tbody th').allInnerTexts();
  expect(labels).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
  const counts = (await cells.allInnerTexts()).map((text) => Number(text.replace(/ .*|,/g, '')));
  expect(counts.reduce((sum, one) => sum + one, 0)).toBe(EXECUTIONS);
  // The same numbers on a logarithmic scale.
  await page.getByRole('button', { name: 'log axis of switches' }).click();
  await calm(page);
  expect(await table.locator('tbody th').allInnerTexts()).toEqual(labels);
  expect((await cells.allInnerTexts()).map((text) => Number(text.replace(/ .*|,/g, '')))).toEqual(
    counts,
  );
  // Ranges of rows have different ends.
  const all = await page.locator('[data-rows] tbody th').allInnerTexts();
  for (const text of all) {
    const [low, high] = text.split(' to ');
    expect(low).not.toBe(high);
  }
});

test('a brush on whole numbers takes whole ones, with its edges between them', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  // Nine cells, one for each number.
  const rangeOf = (key: string) =>
    new RegExp(`b=m\\.${key}%3A([^%&]+)%3A([^%&]+)`).exec(hash(page))?.slice(1);
  await brush(page, 'b m.switches', 2.3 / 9, 4.6 / 9);
  await calm(page);
  expect(rangeOf('switches')).toEqual(['2', '4']);
  const table = page.locator('[data-rows="m.switches"] td:nth-child(3)');
  const counts = (await table.allInnerTexts()).map((text) => Number(text.replace(/ .*|,/g, '')));
  expect(await size(page, 'B')).toBe(counts[2] + counts[3] + counts[4]);
  await expect(page.locator('.head.side-b .chip')).toContainText('switches 2 – 4');
  // The edge is after the cell of 4, where it can be dragged.
  await brush(page, 'b m.switches', 5 / 9, 6.5 / 9);
  await calm(page);
  expect(rangeOf('switches')).toEqual(['2', '6']);
  await page.locator('[data-histogram="b m.switches"]').focus();
  await page.keyboard.press('Alt+ArrowLeft');
  await calm(page);
  expect(rangeOf('switches')).toEqual(['1', '5']);
  await page.keyboard.press('Delete');
  await brush(page, 'b m.waiting_ns', 0.21, 0.57);
  await calm(page);
  for (const end of rangeOf('waiting_ns') ?? ['none']) expect(end).toMatch(/^\d+$/);
});

test('the keyboard does all', async ({ page, alone, context }) => {
  await openAll(page, alone);
  await page.keyboard.press('/');
  await expect(page.locator('#search')).toBeFocused();
  await page.keyboard.type('query_database');
  await expect(page.locator('[data-found]')).toContainText(/\d+ found/);
  await page.keyboard.press('Escape');
  await expect(page.locator('#search')).toHaveValue('');
  await page.keyboard.press('?');
  await expect(page.locator('dialog.help')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.locator('dialog.help')).toBeHidden();
  // Zooming from anywhere.
  for (let depth = 0; depth < 3; depth++) await page.keyboard.press('w');
  await calm(page);
  const deep = hash(page);
  expect(deep).toContain('zoom=');
  await page.keyboard.press('w');
  await page.keyboard.press('d');
  await calm(page);
  expect(hash(page)).not.toBe(deep);
  await page.keyboard.press('s');
  await calm(page);
  expect(hash(page)).toBe(deep);
  await page.keyboard.press('Escape');
  await calm(page);
  expect(hash(page)).not.toContain('zoom');
  // The cursor of the flame graph.
  await page.locator('[data-flame]').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  await expect(page.locator('#flame-said')).toContainText('handle_request, function');
  await page.keyboard.press('Enter');
  await page.keyboard.press('p');
  await calm(page);
  await expect(page.locator('.pin')).toContainText('handle_request');
  await page.keyboard.press('f');
  await calm(page);
  const added = page.locator('[data-histogram^="b c."]');
  await expect(added).toBeFocused();
  // A brush by keys.
  await page.keyboard.press('ArrowRight');
  await calm(page);
  const chosen = await size(page, 'B');
  expect(chosen).toBeLessThan(EXECUTIONS);
  // The added metric and its range are in the address.
  const other = await context.newPage();
  await open(other, page.url());
  expect(await size(other, 'B')).toBe(chosen);
  await other.close();
  for (let step = 0; step < 12; step++) await page.keyboard.press('Shift+ArrowRight');
  await calm(page);
  expect(await size(page, 'B')).toBeGreaterThan(chosen);
  for (let step = 0; step < 8; step++) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Delete');
  await calm(page);
  expect(await size(page, 'B')).toBe(EXECUTIONS);
});

test('an execution opens its critical path, and tells where it is', async ({ page, alone }) => {
  await openAll(page, alone);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  const first = page.locator('.list.side-b [data-execution]').first();
  await first.click();
  const dialog = page.locator('dialog.timeline');
  await expect(dialog.locator('code')).toContainText('tracebraid critical-path /traces/web-');
  await expect(dialog).toContainText(/2026-09-21 \d\d:\d\d:\d\d\.\d{9} UTC/);
  await expect(dialog.locator('.legend')).toContainText('block-device');
  const view = dialog.locator('[data-view]');
  const all = await view.innerText();
  await dialog.locator('[data-timeline]').focus();
  await page.keyboard.press('w');
  await expect(view).not.toHaveText(all);
  const zoomed = await view.innerText();
  await page.keyboard.press('d');
  await expect(view).not.toHaveText(zoomed);
  await page.keyboard.press('Home');
  await expect(view).toHaveText(all);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await expect(dialog.locator('.stack li').first()).toHaveText('main');
  await dialog.locator('summary', { hasText: 'Show as table' }).click();
  expect(await dialog.locator('.shares table tbody tr').count()).toBeGreaterThan(5);
  await calm(page);
  expect(hash(page)).toMatch(/x=\d+/);
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();
  await expect(first).toBeFocused();
  await expect.poll(() => hash(page)).not.toMatch(/x=\d+/);
});

test('lists are as long as they are and stay fast; any metric sorts them', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  const list = page.locator('.list.side-a');
  await expect(list.locator('h3')).toContainText('3,000');
  expect(await list.locator('tbody tr').count()).toBeLessThan(60);
  await expect(list.locator('thead th')).toHaveText(['#', 'duration', 'begin', 'thread', 'trace']);
  await page.selectOption('.executions select', { label: 'switches' });
  await page.click('button:text-is("largest first")');
  await calm(page);
  await list.locator('.scroll').evaluate((element) => element.scrollTo(0, 1e9));
  await expect(list.locator('tbody tr:not([aria-hidden]) td:nth-child(3)').last()).toHaveText('8');
  expect(hash(page)).toContain('sort=m.switches');
});

test('modes, inverting, swapping, resetting, lists to check', async ({ page, alone }) => {
  await openAll(page, alone);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  const flame = page.locator('[data-flame] canvas');
  const seen = new Set([await picture(flame)]);
  for (const press of [
    'button:text-is("A")',
    'button:text-is("B")',
    'button:text-is("Difference")',
    'label.check:has-text("Root at the bottom")',
    'label.check:has-text("Invert")',
  ]) {
    await page.click(press);
    await calm(page);
    if (press !== 'button:text-is("Difference")') {
      await expect.poll(async () => seen.has(await picture(flame))).toBe(false);
      seen.add(await picture(flame));
    }
  }
  await expect(page.locator('[data-ranked]').first()).toContainText(/sda|copy_tree/);
  await page.click('label.check:has-text("Invert")');
  await calm(page);
  const sizes = [await size(page, 'A'), await size(page, 'B')];
  await page.click('button:text-is("Swap A and B")');
  await calm(page);
  expect([await size(page, 'B'), await size(page, 'A')]).toEqual(sizes);
  await page.click('button:text-is("Reset")');
  await calm(page);
  expect(await size(page, 'A')).toBe(EXECUTIONS);
  await valueBox(page, 'a', 'disk', 't.cause').check();
  await valueBox(page, 'b', 'lock', 't.cause').check();
  await calm(page);
  const disk = await size(page, 'A');
  expect(disk).toBeGreaterThan(80);
  expect(disk).toBeLessThan(250);
  await valueBox(page, 'a', 'disk', 't.cause').uncheck();
  await calm(page);
  expect(await size(page, 'A')).toBe(EXECUTIONS);
});

test('served: errors are told', async ({ page, served }) => {
  await page.goto(`${served.origin}?token=wrong`);
  await expect(page.locator('[role=alert]')).toContainText('The token is wrong.');
  await page.goto(`${served.address}#k=7`);
  await page.reload();
  await expect(page.locator('[role=alert]')).toContainText('no such kind');
});

test('hostile names are nothing but text', async ({ page, alone, served }) => {
  for (const address of [alone, served.address]) {
    await open(page, address);
    await page.locator('button', { hasText: 'Slowest 1 %' }).click();
    await page.fill('#search', '<img');
    await calm(page);
    await expect(page.locator('[data-found]')).not.toContainText(/^0 found/);
    await page.locator('.flame summary').click();
    await calm(page);
    for (const tag of ['img', 'svg']) expect(await page.locator(tag).count()).toBe(0);
    // The name is there as text, in the lists and as a value.
    await expect(
      page.locator('fieldset', { hasText: '<img src=x onerror=alert(1)>' }).first(),
    ).toBeAttached();
    // A hostile value that separates the groups: only executions of B have it.
    await valueBox(page, 'b', '<img src=x onerror=alert(1)>', 't.route').check();
    await calm(page);
    const telling = page.locator('table[aria-label="Texts that differ"] tbody tr', {
      hasText: 'route',
    });
    await expect(telling.locator('button').nth(1)).toContainText('<img src=x onerror=alert(1)>');
    for (const tag of ['img', 'svg']) expect(await page.locator(tag).count()).toBe(0);
    await telling.locator('button').nth(1).click();
    await calm(page);
    await page.locator('.list.side-a [data-execution]').first().click();
    await page.waitForSelector('[data-timeline]');
    expect(
      await page.evaluate(() => document.querySelectorAll('script').length),
    ).toBeLessThanOrEqual(3);
    expect(await page.evaluate(() => Object.keys(Object.prototype).length)).toBe(0);
    await page.keyboard.press('Escape');
    await page.goto('about:blank');
  }
});

test('no script can be added to the page: the policy refuses it', async ({ page, alone }) => {
  await openAll(page, alone);
  const { ran, refused } = await page.evaluate(async () => {
    const refused: string[] = [];
    // Both are refused, and the browser reports it.
    const both = new Promise<void>((done) => {
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
        if (refused.push(effectiveDirective) === 2) done();
      });
    });
    const script = document.createElement('script');
    script.textContent = 'window.ran = true';
    document.body.append(script);
    const image = document.createElement('div');
    image.innerHTML = '<img src="data:," onerror="window.ran = true">';
    document.body.append(image);
    await both;
    return { ran: (window as unknown as { ran?: boolean }).ran === true, refused };
  });
  expect(ran).toBe(false);
  expect(refused.sort()).toEqual(['script-src-attr', 'script-src-elem']);
});

test('damaged data is told of', async ({ page, alone }) => {
  const { readFileSync } = await import('node:fs');
  const { fileURLToPath } = await import('node:url');
  const whole = readFileSync(fileURLToPath(alone), 'utf8');
  const at = whole.indexOf('id="pack" data-encoding="gzip+base64">') + 38;
  const broken: [string, string][] = [
    [`${whole.slice(0, at)}!!!${whole.slice(at)}`, 'not base64'],
    [`${whole.slice(0, at)}AAAA${whole.slice(whole.indexOf('<', at))}`, 'damaged'],
    [
      whole.slice(0, at) +
        Buffer.from((await import('node:zlib')).gzipSync('hello')).toString('base64') +
        whole.slice(whole.indexOf('<', at)),
      'not a valid pack',
    ],
  ];
  for (const [at, [text, said]] of broken.entries()) {
    const file = fileURLToPath(alone).replace('page.html', `broken-${at}.html`);
    writeFileSync(file, text);
    await page.goto(`file://${file}`);
    await expect(page.locator('[role=alert]')).toContainText(said);
  }
});

test('executions are read beside the page, which goes on answering', async ({ page, openPack }) => {
  await page.addInitScript(() => {
    const seen = { ticks: [] as number[], said: new Set<string>() };
    Object.assign(window, { seen });
    setInterval(() => {
      seen.ticks.push(performance.now());
      seen.said.add(document.querySelector('main.message [role=status]')?.textContent ?? '');
    }, 5);
  });
  const workers: string[] = [];
  page.on('worker', (worker) => workers.push(worker.url()));
  await openPack(makePack({ executions: 150_000, contexts: 100 }));
  expect(workers.length).toBe(1);
  expect(workers[0]).toMatch(/^blob:/);
  const [ticks, said] = await page.evaluate(() => {
    const { seen } = window as unknown as { seen: { ticks: number[]; said: Set<string> } };
    const [from, to] = ['bytes', 'decoded'].map(
      (name) => performance.getEntriesByName(name)[0].startTime,
    );
    return [seen.ticks.filter((at) => at > from && at < to).length, [...seen.said]] as const;
  });
  // There would be no ticks if the page itself read the pack.
  expect(ticks).toBeGreaterThan(3);
  expect(said.join(' ')).toMatch(/Unpacking|Reading|Arranging/);
});

test('what a trace does not tell is said to be unknown, and why', async ({ page, openPack }) => {
  await openPack(withoutTimes(makePack({ executions: 200, contexts: 60 })));
  await expect(page.locator('.ranking')).toContainText('no scheduling events (sched_switch)');
  await page.locator('.list.side-b [data-execution]').first().click();
  const dialog = page.locator('dialog.timeline');
  await expect(dialog.locator('[data-unknown]')).toContainText(
    'no scheduling events (sched_switch)',
  );
  await expect(dialog.locator('[data-view], [data-timeline], .command')).toHaveCount(0);
  await expect(dialog.locator('[data-unknown]')).toContainText('tracebraid record');
  for (const of of ['[data-verdict]', '.flame', '.ranking'])
    await expect(page.locator(of)).toContainText('no scheduling events (sched_switch)');
  // The command is shown once for the groups and once for the graph.
  for (const of of ['[data-verdict]', '.flame'])
    await expect(page.locator(of)).toContainText('tracebraid record');
  await expect(dialog).not.toContainText(/1 ns|tid 0|was never here/);
});
