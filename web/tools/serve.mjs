/**
 * A server for tests and for development: answers the requests of the page with synthetic packs.
 * `node tools/serve.mjs [executions] [metrics] [contexts]` prints the address.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { aloneFrom } from './alone.mjs';
import { makePack } from './synthetic.mjs';

const PAGE = new URL('../dist/index.html', import.meta.url);

/** Serves packs by kind. Resolves to the address and a function that stops the server. */
export function serve(packs, { token = 'secret', port = 0 } = {}) {
  for (const [kind, { header }] of packs.entries()) header.kind = kind;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const say = (status, type, body) =>
      response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
    const fail = (status, error) => say(status, 'application/json', JSON.stringify({ error }));
    if (url.pathname === '/') return say(200, 'text/html; charset=utf-8', readFileSync(PAGE));
    if (!url.pathname.startsWith('/api/')) return fail(404, 'There is no such page.');
    if (request.headers.authorization !== `Bearer ${token}`)
      return fail(401, 'The token is wrong.');
    const pack = packs[Number(url.searchParams.get('kind') ?? 0)];
    if (url.pathname === '/api/path') {
      const row = Number(url.searchParams.get('execution')) - 1;
      if (!(row >= 0 && row < packs[0].header.executions))
        return fail(404, 'There is no such execution.');
      return say(200, 'application/json', JSON.stringify(packs[0].pathOf(row)));
    }
    if (pack === undefined) return fail(404, 'There is no such kind of execution.');
    if (url.pathname === '/api/pack') return say(200, 'application/octet-stream', pack.bytes);
    if (url.pathname === '/api/export')
      return say(200, 'text/html; charset=utf-8', aloneFrom(pack));
    return fail(404, 'There is no such request.');
  });
  return new Promise((done) => {
    server.listen(port, '127.0.0.1', () => {
      const origin = `http://127.0.0.1:${server.address().port}/`;
      done({ origin, address: `${origin}?token=${token}`, stop: () => server.close() });
    });
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [executions = '2000', metrics = '8', contexts = '300'] = process.argv.slice(2);
  const { address } = await serve(
    [makePack({ executions: +executions, metrics: +metrics, contexts: +contexts })],
    {
      port: 8321,
    },
  );
  console.log(address);
}
