/**
 * Makes an exported page from the built page and a pack: `node tools/alone.mjs OUT.html
 * [executions]`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { makePack } from './synthetic.mjs';

const PAGE = new URL('../dist/index.html', import.meta.url);

/** A page with blocks of data at its end. */
function withBlocks(page, blocks) {
  const end = page.lastIndexOf('</body>');
  return `${page.slice(0, end)}${blocks.join('\n')}\n${page.slice(end)}`;
}

export function alonePage(bytes, paths) {
  const block = (id, data) =>
    `<script type="application/octet-stream" id="${id}" data-encoding="gzip+base64">${gzipSync(data).toString('base64')}</script>`;
  const blocks = [block('pack', bytes)];
  if (paths !== undefined) blocks.push(block('paths', JSON.stringify(paths)));
  return withBlocks(readFileSync(PAGE, 'utf8'), blocks);
}

/** A page with the data of another exported page. */
export function withDataOf(page, exported) {
  const blocks =
    exported.match(/<script type="application\/octet-stream"[\s\S]*?<\/script>/g) ?? [];
  if (blocks.length === 0) throw new Error('the exported page has no data');
  return withBlocks(page, blocks);
}

/** An exported page from a pack of `makePack`. */
export function aloneFrom({ bytes, header, pathOf }) {
  const paths = {};
  for (let one = 0; one < Math.min(header.executions, 3000); one++) paths[one + 1] = pathOf(one);
  return alonePage(bytes, paths);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [out, executions = '2000'] = process.argv.slice(2);
  writeFileSync(out, aloneFrom(makePack({ executions: +executions })));
}
