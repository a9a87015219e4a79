// A thin client of redlockd. It has one connection and a tag for each request, and sends all requests of a
// pass of the event loop with one write (docs/clients.md: "Many requests on one connection").
import net from 'node:net';

const TTL_MS = 2000;
const WAIT_MS = 60_000;

const now = () => performance.now();

function connect(port) {
  const conn = net.connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1');
  const asked = new Map();
  let tags = 0;
  let output = '';
  let input = '';

  function flush() {
    conn.write(output);
    output = '';
  }

  conn.on('data', (part) => {
    const lines = (input + part).split('\n');
    input = lines.pop();
    for (const line of lines) {
      const [tag, ...answer] = line.split(' ');
      asked.get(tag)(answer);
      asked.delete(tag);
    }
  });

  function ask(request) {
    return new Promise((resolve) => {
      const tag = `#${tags++}`;
      asked.set(tag, resolve);
      if (output === '') process.nextTick(flush);
      output += `${tag} ${request}\n`;
    });
  }
  return { ask, close: () => conn.destroy() };
}

export async function open({ daemonPort, together }) {
  const { ask, close } = connect(daemonPort);
  const wait = together ? ` WAIT ${WAIT_MS}` : '';
  return {
    async use(resource, client, work) {
      const sent = now(); // before the write, so that a slow reply cannot make the deadline later
      const [word, token, validityMs, elapsedMs] = await ask(`LOCK ${resource} ${TTL_MS}${wait}`);
      if (word !== 'OK') throw new Error(`not locked: ${word}`);
      try {
        if (sent + Number(elapsedMs) + Number(validityMs) <= now()) throw new Error('late on arrival');
        await work();
      } finally {
        await ask(`UNLOCK ${resource} ${token}`);
      }
    },
    close,
  };
}
