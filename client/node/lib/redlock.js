import { EventEmitter, setMaxListeners } from 'node:events';

import { Client } from './client.js';
import { now } from './clock.js';
import { LostError } from './errors.js';
import {
  addGrant,
  CLIENT,
  disown,
  extendLock,
  keepLock,
  Lock,
  lossOf,
  releaseLock,
} from './lock.js';
import {
  checkDuration,
  checkLabel,
  checkNames,
  checkSecret,
  inByteOrder,
  parseAddress,
} from './protocol.js';

const DEFAULTS = {
  driftFactor: 0.01, // ignored: redlockd knows the drift of its clocks
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
  timeout: 5000,
  connectTimeout: 2000,
};

const NUMBERS = [...Object.keys(DEFAULTS), 'wait'];
const SHARED = [
  ...['driftFactor', 'retryCount', 'retryDelay', 'retryJitter', 'automaticExtensionThreshold'],
  ...['wait', 'fence', 'hold', 'linger', 'slots'],
];
const OF_ACQUIRE = [...SHARED, 'signal'];
const OF_REDLOCK = [...SHARED, 'timeout', 'connectTimeout', 'secret', 'secretFile', 'name', 'tls'];
const TIMER_MAX_MS = 2 ** 31 - 1; // of setTimeout()
const FRESH = 0.9; // the least part of the duration that is left when acquire() returns

export class Redlock extends EventEmitter {
  constructor(urls, settings = {}) {
    super();
    const list = typeof urls === 'string' ? [urls] : urls?.[Symbol.iterator] ? [...urls] : [];
    if (list.length === 0) throw new TypeError('the address of a redlockd is required');
    const addresses = list.map(parseAddress);
    if (settings.secret !== undefined) checkSecret(settings.secret);
    if (settings.name !== undefined) checkLabel(settings.name);
    this.settings = { ...DEFAULTS, ...known(settings, OF_REDLOCK, {}) };
    checkNumbers(this.settings);
    for (const limit of ['timeout', 'connectTimeout'])
      if (!(this.settings[limit] > 0 && this.settings[limit] <= TIMER_MAX_MS))
        throw new RangeError(
          `${limit} must be above 0 and at most ${TIMER_MAX_MS}, in milliseconds`,
        );
    // redlock 5 does not throw either if nobody listens to the event.
    this.on('error', () => {});
    this[CLIENT] = new Client(addresses, this.settings, {
      onError: (error) => this.emit('error', error),
      onWarning: (resource, reason) => this.emit('warning', { resource, reason }),
    });
    // A printed Redlock, or an error that refers to one, must not show the secret.
    const hide = { enumerable: false };
    Object.defineProperties(this, { settings: hide, [CLIENT]: hide });
  }

  /**
   * A listener that throws is an uncaught exception, as with an AbortSignal. The client goes on: it
   * could be reading the replies to other requests.
   */
  emit(...args) {
    try {
      return super.emit(...args);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
      return true;
    }
  }

  /** Closes the connections. Waiting requests fail, and HOLDs are released; other locks live on. */
  quit() {
    return this[CLIENT].quit();
  }

  async acquire(resources, duration, settings) {
    const options = settings
      ? { ...this.settings, ...known(settings, OF_ACQUIRE, this.settings) }
      : this.settings;
    if (settings) checkNumbers(options);
    const names = checkNames(resources, options.slots);
    checkDuration(duration);
    if (!options.signal) return this.#acquire(names, duration, options, null);
    options.signal.throwIfAborted();
    setMaxListeners(0, options.signal); // many waits may share it, and each has listeners
    const acquired = this.#acquire(names, duration, options, [options.signal]);
    return unlessAborted(acquired, options.signal);
  }

  async release(lock) {
    return releaseLock(lock);
  }

  async extend(lock, duration) {
    return extendLock(lock, duration, this.settings.timeout);
  }

  async using(resources, duration, ...rest) {
    const [settings, routine] = typeof rest[0] === 'function' ? [undefined, rest[0]] : rest;
    if (typeof routine !== 'function') throw new TypeError('routine must be a function');
    const lock = await this.acquire(resources, duration, settings);
    const threshold = settings?.automaticExtensionThreshold;
    keepLock(lock, threshold ?? this.settings.automaticExtensionThreshold);
    let result;
    try {
      result = await routine(lock.signal, lock);
    } catch (error) {
      await lock.release().catch(() => {}); // the error of the routine matters more
      throw error;
    }
    await lock.release().catch((error) => {
      if (error instanceof LostError) throw error;
      this.emit('error', error); // the lock was held until now, and expires after its TTL
    });
    return result;
  }

  async #acquire(names, duration, options, signals) {
    const until = now() + waitOf(options);
    if (names.length > 1) return this.#acquireAll(names, duration, until, options, signals);
    const grant = await this[CLIENT].lock(names[0], duration, until, options, signals);
    return this.#finish(this.#lockOf([grant]), options);
  }

  #lockOf(grants) {
    return new Lock(this, undefined, grants, undefined, 0);
  }

  /** In the order of their bytes, so that no two clients wait for each other. All or none. */
  async #acquireAll(names, duration, until, options, signals) {
    const client = this[CLIENT];
    const [first, ...others] = inByteOrder(names);
    const grants = new Map();
    grants.set(first, await client.lock(first, duration, until, options, signals));
    // Extends what is granted while the rest waits.
    const interim = this.#lockOf([grants.get(first)]);
    keepLock(interim, 0);
    try {
      for (const name of others) {
        const stops = [...(signals ?? []), interim.signal];
        grants.set(name, await client.lock(name, duration, until, options, stops));
        addGrant(interim, grants.get(name));
      }
      if (interim.remaining < duration * FRESH) await this.extend(interim, duration);
    } catch (error) {
      await interim.release().catch(() => {});
      throw error;
    }
    disown(interim);
    return this.#finish(this.#lockOf(names.map((name) => grants.get(name))), options);
  }

  /** Without a HOLD, and with one resource, its deadline was checked on arrival. */
  #finish(lock, { hold, linger, automaticExtensionThreshold }) {
    if (hold || linger) keepLock(lock, automaticExtensionThreshold);
    else if (lock.resources.length === 1) return lock;
    return lossOf(lock) === null ? lock : lock.release(); // which throws the loss
  }
}

/**
 * A setting that is undefined, such as a missing key of a configuration, has its default. One of the
 * client's own settings may be repeated, as in {...client.settings, wait: 0}.
 */
function known(settings, names, own) {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  for (const [name, value] of given)
    if (!names.includes(name) && value !== own[name])
      throw new TypeError(`unknown setting: ${name}`);
  return Object.fromEntries(given);
}

/** Text, for example from the environment, would be appended where a number is added. */
function checkNumbers(settings) {
  for (const name of NUMBERS)
    if (typeof (settings[name] ?? 0) !== 'number' || Number.isNaN(settings[name]))
      throw new RangeError(`${name} must be a number`);
}

function waitOf({ wait, retryCount, retryDelay }) {
  const endless = retryCount === -1 || retryCount === Infinity;
  wait ??= endless ? Infinity : retryCount * retryDelay;
  if (!(wait >= 0)) throw new RangeError('wait must be 0 or more, in milliseconds');
  return wait;
}

/**
 * The result of acquire(), unless the signal is aborted first. A lock that comes later is released.
 */
function unlessAborted(acquired, signal) {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    acquired
      .then((lock) => {
        if (signal.aborted) return lock.release().catch(() => {});
        return resolve(lock);
      }, reject)
      .finally(() => signal.removeEventListener('abort', onAbort));
  });
}
