// The client in docs/clients.md, extracted from the page. It opens a connection for each request.
import fs from 'node:fs';

const TTL_MS = 2000;
const WAIT_MS = 60_000;

const document = fs.readFileSync('docs/clients.md', 'utf8'); // in the folder of the Makefile
const client = document.split('\n```js\n')[1].split('\n```\n')[0];
const { withLock } = await import(`data:text/javascript,${encodeURIComponent(client)}`);

export async function open({ daemonPort, together }) {
  const address = { host: '127.0.0.1', port: daemonPort };
  const options = { ttlMs: TTL_MS, waitMs: together ? WAIT_MS : 0 };
  return {
    use: (resource, _, work) => withLock(address, resource, options, work),
    close() {},
  };
}
