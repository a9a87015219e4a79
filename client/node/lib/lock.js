import { answerLimit, Grant } from './client.js';
import { now } from './clock.js';
import { ExecutionResult, LostError } from './errors.js';
import {
  checkDuration,
  checkNames,
  checkTokens,
  expiredError,
  unextendedError,
} from './protocol.js';

const TIMER_MAX_MS = 1000; // so that a timer which stood still during suspend fires soon after it

/** The Client of a Redlock; not part of the API. */
export const CLIENT = Symbol('client');

// For redlock.js: what only the library may do with a lock.
export let keepLock, releaseLock, extendLock, lossOf, addGrant, disown;

const aborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted').get;

/**
 * One or several resources, all held with one lifetime: until the earliest of their deadlines.
 *
 *      granted      extend       given up             deadline
 *     ----|------------|------------|--------------------|---->
 *         |<-- ttl/3 ->|<-- ttl/3 ->|<------ ttl/3 ----->|
 *
 * An extended lock keeps to these thirds, as redlockd does with HOLDs. Other locks last until the
 * deadline.
 */
export class Lock {
  #grants;
  #attempts;
  #threshold = null; // automatic extension, at the latest when this many ms are left; null: none
  #renewingAt = null; // when the extension that is under way began
  #error = null; // why the lock is lost
  #lostDeadline = 0; // the deadline at that time; a late reply to EXTEND does not move it
  #released = false;
  #controller = null;
  #timer = null;

  /**
   * `value` has the tokens of the resources, separated by commas. So a lock can be extended and
   * released by a process that did not acquire it.
   */
  constructor(redlock, resources, value, attempts, expiration) {
    this.redlock = redlock;
    this.#attempts = attempts;
    if (Array.isArray(value)) {
      this.#grants = value;
    } else {
      const tokens = checkTokens(value, checkNames(resources).length);
      const left = expiration - Date.now();
      // Without a number, no deadline would ever pass.
      if (!Number.isFinite(left)) throw new TypeError('expiration must be that of a lock');
      const deadline = now() + left;
      const ttl = Math.max(1, left);
      this.#grants = resources.map((name, index) => {
        const grant = new Grant(name, tokens[index], ttl, deadline, null, null);
        return Object.assign(grant, { proven: false });
      });
    }
    for (const grant of this.#grants) this.#watch(grant);
  }

  get resources() {
    return this.#grants.map((grant) => grant.name);
  }

  get attempts() {
    this.#attempts ??= new ExecutionResult(this.redlock[CLIENT].url).attempts;
    return this.#attempts;
  }

  get value() {
    return this.#grants.map((grant) => grant.token).join(',');
  }

  /** The fencing token of each resource; null without the setting `fence`. */
  get fences() {
    return this.#grants.map((grant) => grant.fence);
  }

  /** The fencing token of the only resource. */
  get fence() {
    if (this.#grants.length !== 1) throw new TypeError('several resources: use lock.fences');
    return this.#grants[0].fence;
  }

  #deadline() {
    if (this.#released) return 0;
    if (this.#error) return this.#lostDeadline;
    return this.#earliest().deadline;
  }

  #earliest() {
    const grants = this.#grants;
    let earliest = grants[0];
    for (const grant of grants) if (grant.deadline < earliest.deadline) earliest = grant;
    return earliest;
  }

  /** Milliseconds for which the lock is safe; 0 if it is not held. */
  get remaining() {
    return Math.max(0, this.#deadline() - now());
  }

  /** When `remaining` will be 0, as a time of day; 0 if the lock is not held. */
  get expiration() {
    const remaining = this.remaining;
    return remaining > 0 ? Date.now() + Math.floor(remaining) : 0;
  }

  /** Is aborted when the lock is lost. Its `reason`, also `error`, is a LostError. */
  get signal() {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      const check = () => this.#checkDeadline();
      // The timers of a process that was stopped fire late. So ask for the time as well.
      Object.defineProperties(this.#controller.signal, {
        aborted: {
          get() {
            check();
            return aborted.call(this);
          },
        },
        throwIfAborted: {
          value() {
            if (this.aborted) throw this.reason;
          },
        },
      });
      if (this.#error) this.#abort();
      this.#schedule();
    }
    return this.#controller.signal;
  }

  release() {
    return this.#release();
  }

  extend(duration) {
    return this.redlock.extend(this, duration);
  }

  static {
    /** Extends the lock automatically until it is released or lost. */
    keepLock = (lock, threshold) => {
      lock.#threshold = threshold;
      lock.#schedule();
    };
    releaseLock = (lock) => lock.#release();
    extendLock = (lock, duration, timeout) => lock.#extend(duration, timeout);
    /** Why the lock is lost; null: it is not. */
    lossOf = (lock) => {
      lock.#checkDeadline();
      return lock.#error;
    };
    addGrant = (lock, grant) => {
      lock.#grants.push(grant);
      lock.#watch(grant);
      lock.#schedule();
    };
    /** Leaves the grants to another Lock. */
    disown = (lock) => {
      lock.#released = true;
      clearTimeout(lock.#timer);
    };
  }

  /** After a loss, the caller has nothing to wait for. The keys may still be there. */
  async #release() {
    // A deadline from another process may be wrong: only redlockd knows whether it has passed.
    if (this.#grants.every((grant) => grant.proven)) this.#checkDeadline();
    this.#released = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const client = this.redlock[CLIENT];
    const grants = this.#grants;
    for (const { hold } of grants) if (hold !== null) hold.onLost = null;
    const released = all(grants.map((grant) => client.release(grant)));
    if (this.#error === null) return (await released)[0];
    released.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve)); // UNLOCK is written: the caller may exit
    throw this.#error;
  }

  async #extend(duration, timeout) {
    checkDuration(duration);
    this.#checkHeld();
    try {
      await this.#extendAll(duration, Math.min(this.#deadline(), now() + timeout), false);
    } catch (error) {
      this.#checkDeadline();
      throw this.#error ?? error;
    }
    this.#checkHeld();
    this.#schedule();
    return this;
  }

  #checkHeld() {
    this.#checkDeadline();
    if (this.#error || this.#released)
      throw this.#error ?? new LostError('the lock was released', { reason: 'released' });
  }

  #extendAll(ttl, until, insists) {
    const client = this.redlock[CLIENT];
    return all(this.#grants.map((grant) => client.extend(grant, ttl, until, insists)));
  }

  #ttl() {
    return this.#earliest().ttl;
  }

  // --- time ---

  /** Never at once after an extension: redlockd limits how often a lock is extended. */
  #extendAt() {
    const ttl = this.#ttl();
    return this.#deadline() - Math.max((ttl * 2) / 3, Math.min(this.#threshold, ttl * 0.9));
  }

  /** A process that was stopped, and sent no EXTEND in time, first waits for the reply to one. */
  #giveUpAt() {
    const ttl = this.#ttl();
    const deadline = this.#deadline();
    return Math.min(deadline, Math.max(deadline - ttl / 3, this.#renewingAt + answerLimit(ttl)));
  }

  #nextAt() {
    if (this.#threshold === null) return this.#deadline();
    return this.#renewingAt === null ? this.#extendAt() : this.#giveUpAt();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const needed = this.#threshold !== null || this.#controller !== null;
    if (!needed || this.#error || this.#released) return;
    const wait = Math.max(0, Math.ceil(this.#nextAt() - now()));
    this.#timer = setTimeout(() => this.#onTimer(), Math.min(wait, TIMER_MAX_MS));
    // A lock that was not released must not keep the process alive after quit().
    if (this.redlock[CLIENT].hasQuit) this.#timer.unref();
  }

  #onTimer() {
    this.#checkDeadline();
    if (this.#error) return;
    if (this.#threshold !== null && now() >= this.#nextAt()) {
      if (this.#renewingAt === null) this.#renew();
      else this.#lose(this.#unextendedError(this.#failure()));
    }
    this.#schedule();
  }

  async #renew() {
    this.#renewingAt = now();
    try {
      await this.#extendAll(this.#ttl(), this.#giveUpAt(), true);
    } catch (cause) {
      this.#lose(this.#unextendedError(cause));
    }
    this.#renewingAt = null;
    this.#schedule();
  }

  #failure() {
    const failed = this.#grants.find((grant) => grant.failure !== null);
    return failed?.failure ?? this.redlock[CLIENT].trouble;
  }

  #unextendedError(cause) {
    return unextendedError(this.resources.join(', '), cause);
  }

  #checkDeadline() {
    if (!this.#released && !this.#error && this.#deadline() <= now())
      this.#lose(expiredError(this.resources.join(', ')));
  }

  // --- loss ---

  #watch(grant) {
    const { hold } = grant;
    grant.onLost = (error) => this.#lose(error);
    if (!hold) return;
    hold.onLost = (error) => this.#lose(error, hold.ended);
    if (hold.error) this.#lose(hold.error, hold.ended);
  }

  /**
   * Final: a lock that was lost once never counts as held again. ended: another client can have it
   * already. Otherwise the work has until the deadline to stop.
   */
  #lose(error, ended = error.reason === 'gone') {
    if (this.#released) return;
    if (this.#error) {
      if (ended) this.#lostDeadline = 0;
      return;
    }
    this.#lostDeadline = ended ? 0 : this.#deadline();
    this.#error = error;
    clearTimeout(this.#timer);
    if (this.#controller) this.#abort();
    this.redlock.emit('error', error);
  }

  #abort() {
    this.#controller.signal.error = this.#error;
    this.#controller.abort(this.#error);
  }
}

/** Waits for all, and only then throws the worst error: the loss of the lock, or the first one. */
async function all(promises) {
  const results = await Promise.allSettled(promises);
  const errors = results
    .filter((result) => result.status === 'rejected')
    .map(({ reason }) => reason);
  if (errors.length > 0) throw errors.find((error) => error instanceof LostError) ?? errors[0];
  return results.map((result) => result.value);
}
