// The child process of the test client_suspended: node suspended.js URL NAME. It holds NAME, and
// says "tick: held" or "tick: lost" all the time. After a line of input it says what the lock says.
import Redlock from '../index.js';

const [url, name] = process.argv.slice(2);
const lock = await new Redlock(url).acquire([name], 1500);
const { signal } = lock;
let asked = false;
let wasHeld = false;

function state() {
  return signal.aborted || lock.remaining === 0 ? 'lost' : 'held';
}

process.stdin.on('data', () => (asked = true));
setInterval(() => {
  if (!wasHeld) {
    wasHeld = true;
    console.log(state());
  } else if (asked) {
    console.log(`check: ${state()} ${lock.remaining} ${signal.aborted} ${signal.error?.reason}`);
    process.exit();
  } else if (state() === 'lost') {
    console.log('tick: lost');
  }
}, 1);
