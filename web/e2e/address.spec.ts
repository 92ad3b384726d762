/** Restoring groups, searches, pins and the token from the address, and the steps of Back. */

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
} from './page';

test('opens with the groups of the terminal, and says so in the address', async ({
  page,
  alone,
  context,
}) => {
  await open(page, alone);
  expect([await size(page, 'A'), await size(page, 'B')]).toEqual([
    EXECUTIONS / 2,
    EXECUTIONS / 100,
  ]);
  await expect(page.locator('button.main')).toHaveAttribute(
    'title',
    /B: the 30 slowest of 3,000 .*A: the 1,500 around the median/,
  );
  await expect(page.locator('[data-ranked]').first()).toContainText(/sda|copy_tree/);
  expect(hash(page)).toMatch(/^#a=m\.duration_ns.*&b=m\.duration_ns/);
  const told = hash(page);
  // A group of all executions is a choice, too: opening the link must not choose groups
  // automatically.
  await page.click('button:text-is("Reset")');
  await calm(page);
  expect(hash(page)).toBe('#a=all');
  const other = await context.newPage();
  await open(other, page.url());
  expect([await size(other, 'A'), await size(other, 'B')]).toEqual([EXECUTIONS, EXECUTIONS]);
  await page.goBack();
  await calm(page);
  expect(hash(page)).toBe(told);
  expect(await size(page, 'B')).toBe(30);
  // With a history entry to return to, an empty address restores the initial view.
  await page.click('button:text-is("Reset")');
  await calm(page);
  await page.evaluate(() => {
    location.hash = '';
  });
  await calm(page);
  expect(await size(page, 'B')).toBe(30);
});

test('permalinks give the same page, and the way back goes step by step', async ({
  page,
  alone,
  context,
}) => {
  await openAll(page, alone);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  await valueBox(page, 'b', 'worker-2', 'thread').check();
  await calm(page);
  await page.fill('#search', 'query');
  await page.locator('[data-ranked]').first().click();
  await page.keyboard.press('p');
  await page.click('button:text-is("log heights")');
  await calm(page);
  const sizes = [await size(page, 'A'), await size(page, 'B')];
  expect(sizes[1]).toBeLessThan(30);
  const other = await context.newPage();
  await open(other, page.url());
  expect([await size(other, 'A'), await size(other, 'B')]).toEqual(sizes);
  await expect(other.locator('#search')).toHaveValue('query');
  await expect(other.locator('.pin')).toHaveCount(1);
  await expect(other.locator('button:text-is("log heights")')).toHaveAttribute(
    'aria-pressed',
    'true',
  );
  const [graph, same] = [page, other].map((one) => one.locator('[data-flame] canvas'));
  await expect.poll(async () => (await picture(same)) === (await picture(graph))).toBe(true);
  // Four steps: height, pin, search and zoom.
  for (let step = 0; step < 4; step++) await page.goBack();
  await calm(page);
  expect(await size(page, 'B')).toBe(sizes[1]);
  await expect(page.locator('.pin')).toHaveCount(0);
  await expect(page.locator('#search')).toHaveValue('');
  await page.goBack();
  await calm(page);
  expect(await size(page, 'B')).toBe(30);
  await page.goBack();
  await calm(page);
  expect(await size(page, 'B')).toBe(EXECUTIONS);
  await page.goForward();
  await calm(page);
  expect(await size(page, 'B')).toBe(30);
});

test('addresses that make no sense are harmless', async ({ page, alone }) => {
  for (const bad of [
    '#a=%%%&b=;;;::=',
    '#zoom=99999999&pins=5,x,-1&x=77777&k=9',
    '#a=m.duration_ns%3ANaN%3A7&ctx=c.99999,i.5,c.1',
    '#scale=__proto__:log',
  ]) {
    await page.goto('about:blank');
    await open(page, alone + bad);
    expect(await size(page, 'A')).toBe(/a=/.test(bad) ? EXECUTIONS : EXECUTIONS / 2);
    if (bad.includes('&x='))
      await expect(page.locator('dialog.timeline .error')).toContainText('no execution 77777');
  }
});

test('served: the token leaves the address, kinds are switched, the page is exported', async ({
  page,
  served,
  context,
}) => {
  await open(page, served.address);
  expect(await size(page, 'B')).toBe(30);
  expect(page.url()).not.toContain('secret');
  await page.reload();
  await page.waitForSelector('[data-flame]');
  await calm(page);
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  await page.locator('.list.side-b [data-execution]').first().click();
  await expect(page.locator('dialog.timeline .legend')).toContainText('block-device');
  await page.keyboard.press('Escape');
  await expect(page.locator('dialog.timeline')).toBeHidden();
  await page.selectOption('header.top select', { index: 1 });
  await expect(page.locator('[data-size=A]')).toHaveText('50');
  await page.goBack();
  await expect(page.locator('[data-size=B]')).toHaveText('30');
  await calm(page);
  const waits = page.waitForEvent('download');
  await page.click('button:text-is("Export")');
  const download = await waits;
  const file = await download.path();
  expect(download.suggestedFilename()).toMatch(/^[\w.-]+\.html$/);
  const other = await context.newPage();
  const asked: string[] = [];
  other.on('request', (request) => asked.push(request.url()));
  // A page opened from a file sends no requests.
  const { copyFileSync } = await import('node:fs');
  copyFileSync(file, `${file}.html`);
  await open(other, `file://${file}.html${hash(page)}`);
  expect(await size(other, 'B')).toBe(30);
  expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
  await other.locator('.list.side-b [data-execution]').first().click();
  await expect(other.locator('dialog.timeline .legend')).toContainText('block-device');
});

test('served: a dialog that closes late changes the address of its own kind only', async ({
  page,
  served,
}) => {
  await open(page, served.address);
  await page.locator('.list.side-b [data-execution]').first().click();
  await expect(page.locator('dialog.timeline .legend')).toContainText('block-device');
  await page.evaluate(() => {
    const kinds = document.querySelector<HTMLSelectElement>('header.top select');
    if (kinds === null) throw new Error('the page has no list of kinds');
    // The close event is dispatched asynchronously.
    document.querySelector<HTMLDialogElement>('dialog.timeline')?.close();
    kinds.value = '1';
    kinds.dispatchEvent(new Event('change', { bubbles: true }));
  });
  await expect(page.locator('[data-size=A]')).toHaveText('50');
  await expect.poll(() => hash(page)).toContain('k=1');
  await page.goBack();
  await expect(page.locator('[data-size=B]')).toHaveText('30');
});

test('served: links without a token open in other tabs of the same browser, and in no other one', async ({
  page,
  served,
  context,
  browser,
}) => {
  await open(page, served.address);
  await page.locator('[data-ranked]').first().click();
  await calm(page);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: served.origin });
  await page.click('button:text-is("Copy link")');
  await expect(page.locator('header.top')).toContainText('Link copied');
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link).toBe(page.url());
  expect(link).not.toContain('secret');
  expect(link).toContain('zoom=');
  const other = await context.newPage();
  await open(other, link);
  expect(await size(other, 'B')).toBe(await size(page, 'B'));
  // A wrong token does not replace the stored one.
  await open(other, `${served.origin}?token=wrong`);
  expect(await size(other, 'B')).toBe(30);
  expect(other.url()).not.toContain('wrong');
  await open(await context.newPage(), link);
  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(link);
  await expect(stranger.locator('[role=alert]')).toContainText('The token is wrong.');
  await stranger.context().close();
});

test('a drag that rests on its way can be gone back from', async ({ page, alone }) => {
  await openAll(page, alone);
  await brush(page, 'b m.duration_ns', 0.5, 0.9);
  await calm(page);
  const [before, chosen] = [hash(page), await size(page, 'B')];
  const { x, y } = await laneOf(page, 'b m.waiting_ns');
  await page.mouse.move(x(0.2), y);
  await page.mouse.down();
  await page.mouse.move(x(0.8), y, { steps: 5 });
  // Lists and colours are complete, but the drag is not.
  await calm(page);
  expect(await size(page, 'B')).not.toBe(chosen);
  expect(hash(page)).toBe(before);
  await page.mouse.up();
  await calm(page);
  expect(hash(page)).toContain('m.waiting_ns');
  await page.goBack();
  await calm(page);
  expect(hash(page)).toBe(before);
  expect(await size(page, 'B')).toBe(chosen);
});

test('a search can be gone back from, not each of its letters', async ({ page, alone }) => {
  await openAll(page, alone);
  await brush(page, 'b m.duration_ns', 0.5, 0.9);
  await calm(page);
  const before = hash(page);
  await page.keyboard.press('/');
  for (const letter of 'disk') {
    await page.keyboard.type(letter);
    await calm(page);
  }
  expect(hash(page)).toContain('find=disk');
  await page.goBack();
  await calm(page);
  expect(hash(page)).toBe(before);
});
