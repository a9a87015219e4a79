// The child process of the test client_suspended: node suspended.js URL NAME. It holds NAME with
// automatic extension. It says "held" or "lost" at first, then "tick: lost" whenever the lock is
// lost. After a line of input it says what the lock says.
import Redlock from '../index.js';

const [url, name] = process.argv.slice(2);
let asked = false;
let wasHeld = false;

function state(lock) {
  return lock.signal.aborted || lock.remaining === 0 ? 'lost' : 'held';
}

process.stdin.on('data', () => (asked = true));
await new Redlock(url).using([name], 1500, (signal, lock) => {
  setInterval(() => {
    if (!wasHeld) {
      wasHeld = true;
      console.log(state(lock));
    } else if (asked) {
      const { aborted, error } = signal;
      console.log(`check: ${state(lock)} ${lock.remaining} ${aborted} ${error?.reason}`);
      process.exit();
    } else if (state(lock) === 'lost') {
      console.log('tick: lost');
    }
  }, 1);
  return new Promise(() => {}); // until the process exits
});
