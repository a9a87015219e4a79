// Requests to the first redlockd of a list that can be reached: connecting, repeating, giving up.
import fs from 'node:fs';

import { now } from './clock.js';
import {
  DeniedError,
  ExecutionError,
  ExecutionResult,
  LostError,
  UnavailableError,
} from './errors.js';
import { Hold, Link, Request } from './link.js';
import {
  checkSecret,
  expiredError,
  lockRequest,
  readExtension,
  readGrant,
  replyError,
  WAIT_MAX_MS,
} from './protocol.js';

const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 1000;
const AVOID_MS = 5000; // for so long, a daemon that failed is the last choice
const LINKS_MAX = 8; // connections that cancelled waits may leave behind
const EXTEND_PAUSE_MAX_MS = 500;
const ANSWER_MIN_MS = 100;
// The last LOCK is sent when the wait ends. Nothing follows a failure this shortly before its end.
const LAST_MS = 10;

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

/**
 * How long to wait for the reply to an EXTEND before sending it again: a tenth of the TTL, at least
 * 100 ms, at most a sixth of the TTL.
 */
export function answerLimit(ttl) {
  return Math.min(ttl / 6, Math.max(ttl / 10, ANSWER_MIN_MS));
}

/** One granted resource. */
export class Grant {
  constructor(name, token, ttl, deadline, fence, hold) {
    this.name = name; // of a semaphore: the name of the slot
    this.token = token;
    this.ttl = ttl;
    this.deadline = deadline; // on the clock of clock.js
    this.fence = fence;
    this.hold = hold; // null: the lock does not depend on a connection
    this.proven = true; // false: the deadline comes from the time of day of another process
    this.unlocking = false; // the token is good only for UNLOCK
    this.unlockSent = false; // an UNLOCK without a reply may have been carried out
    this.failure = null; // why the automatic extension that is under way has not succeeded yet
    this.onLost = null; // called with a LostError by each EXTEND that finds the lock lost
  }
}

export class Client {
  trouble = null; // why no redlockd could be reached, until one is
  #reached = false; // whether one ever was
  #addresses;
  #settings;
  #events;
  #current = null;
  #opening = null;
  #failures = 0; // rounds over all addresses in which none could be reached
  #links = new Set();
  #unlocking = 0; // UNLOCKs under way
  #onUnlocked = null; // called when there are none any more
  #quit = null;

  /** events: {onError(error), onWarning(resource, reason)} */
  constructor(addresses, settings, events) {
    this.url = addresses[0].url;
    this.#addresses = addresses.map((address) => ({ ...address, avoidUntil: 0 }));
    this.#settings = settings;
    this.#events = events;
  }

  /**
   * Acquires one resource. Waits until `until` at most, or until one of the signals is aborted. A
   * lock that is granted after that is released. A redlockd that was never reached may be starting,
   * or its address is wrong, so attempts to reach the first one end with the timeout of a request.
   */
  async lock(name, ttl, until, options, signals) {
    const firstUntil = Math.min(until, now() + this.#settings.timeout);
    for (let broken = 0, wait = until - now(); ; wait = until - now()) {
      let error;
      try {
        this.#checkOpen();
        if (signals !== null) throwIfAborted(signals);
        const request = this.#lockRequest(name, ttl, wait, options);
        const reply = this.#ask(request);
        if (signals === null) await reply;
        else await this.#cancellable(reply, request, signals);
        const granted = readGrant(request.reply, name, options.slots);
        if (granted !== null) {
          const { token, fence } = granted;
          const deadline = deadlineOf(request, granted, ttl);
          const grant = new Grant(granted.name, token, ttl, deadline, fence, request.hold);
          if (deadline <= now()) await this.#confirm(grant);
          return grant;
        }
        error = this.#refusal(request, name);
      } catch (failure) {
        error = failure;
      }
      if (signals !== null) throwIfAborted(signals);
      if (error instanceof ExecutionError) this.#events.onError(error);
      // A LOCK that does not wait gets a second chance if its daemon ended meanwhile.
      const again = error.broken && broken++ === 0;
      const left = Math.max(0, (this.#reached ? until : firstUntil) - now());
      if (!canRetryLock(error) || this.#quit || (!again && left <= LAST_MS)) throw error;
      await sleep(Math.min(retryPause(options), left));
    }
  }

  #lockRequest(name, ttl, wait, options) {
    wait = Math.min(Math.max(0, wait), WAIT_MAX_MS);
    const hold = options.hold || options.linger ? new Hold(Boolean(options.linger)) : null;
    const text = lockRequest(name, ttl, wait, options);
    const request = new Request(text, wait + this.#settings.timeout, name, options.slots, hold);
    request.onLate = () => this.#discard(request);
    return request;
  }

  /** A LOCK that was abandoned has a reply. */
  #discard(request) {
    const granted = readGrant(request.reply, request.name, request.slots);
    if (granted === null) return; // it was not granted
    // Only this connection, or the end of it, ends a HOLD for certain.
    if (request.hold !== null) request.hold.link = request.link;
    const grant = new Grant(granted.name, granted.token, 0, 0, null, request.hold);
    this.unlock(grant).catch(() => {}); // if it fails, the lock expires after its TTL
  }

  async #cancellable(reply, request, signals) {
    const cancel = () => {
      const { link } = request;
      // The other requests leave the connection, so that it can end: only that undoes the LOCK.
      if (link !== null && this.#links.size < LINKS_MAX) this.#retire(link);
      if (link !== null) link.abandon(request, new ExecutionError('the request was cancelled'));
      else request.abandoned = true; // it is not sent yet
    };
    for (const signal of signals) signal.addEventListener('abort', cancel);
    try {
      await reply;
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', cancel);
    }
  }

  /** The grant has arrived after its deadline. Only an EXTEND shows whether the lock is held. */
  async #confirm(grant) {
    try {
      await this.#tryExtend(grant, grant.ttl, true);
      if (grant.deadline > now() && !grant.hold?.error) return;
    } catch {
      // The lock is released below, whatever the reason.
    }
    this.unlock(grant).catch(() => {}); // if it fails, the lock expires after its TTL
    const message = `${grant.name} was granted too late: no validity is left`;
    throw new ExecutionError(message, undefined, { outcome: 'LATE' });
  }

  /**
   * Extends the grant; repeats the request until `until`. Throws LostError once the lock is lost
   * for good. After any other error the earlier deadline stands. insists: repeats it after each of
   * these, since the operator may be about to change the secret or the limit. Then an extension by
   * the program will do as well.
   */
  async extend(grant, ttl, until, insists) {
    const earlier = grant.deadline;
    let error = null;
    let answer = null; // the last reply that was not OK
    let extended = false;
    if (insists) grant.failure = null;
    for (;;) {
      const askedAt = now();
      const attempt = this.#tryExtend(grant, ttl);
      attempt.then(
        () => (extended = true),
        (failure) => {
          if (failure instanceof LostError) grant.onLost?.(failure);
          if (!failure.outcome) return;
          answer = failure;
          if (insists && grant.failure !== null) grant.failure = answer;
        },
      );
      // If the reply is late, another request follows, and whichever is answered first counts.
      // Another connection has no better chance with a HOLD.
      const limit = grant.hold ? until - now() : Math.min(until - now(), answerLimit(ttl));
      try {
        if ((await within(attempt, limit)) !== LATE) break;
        error =
          this.trouble ??
          answer ??
          new UnavailableError(`${grant.name}: no answer to EXTEND in time`);
        const silent = this.#current !== null && this.#current.heardAt < askedAt;
        if (silent && now() - askedAt >= answerLimit(ttl)) this.#avoid(this.#current);
      } catch (failure) {
        error = failure;
      }
      if (insists) grant.failure = error;
      const pause = Math.min(ttl / 30, EXTEND_PAUSE_MAX_MS);
      const canRetry = !(error instanceof LostError) && (insists || canRetryExtend(error));
      const isLast = !canRetry || this.#quit !== null || now() + pause >= until;
      if (!isLast) await sleep(pause);
      if (extended || (insists && grant.deadline > earlier)) break; // by a reply that was late
      if (isLast) throw error;
    }
    if (insists) grant.failure = null;
  }

  async #tryExtend(grant, ttl, confirming = false) {
    this.#checkOpen();
    const { name, token, hold } = grant;
    if (hold?.error) throw hold.error;
    if (grant.unlocking) throw new LostError(`${name} was released`, { reason: 'released' });
    const request = new Request(`EXTEND ${name} ${token} ${ttl}`, this.#settings.timeout);
    request.onLate = () =>
      request.reply === 'GONE' && grant.onLost?.(this.#refusal(request, name));
    await this.#ask(request, hold?.link);
    const extended = readExtension(request.reply, token);
    if (extended === null) throw this.#refusal(request, name);
    // After the deadline another client may have held the lock before this EXTEND succeeded.
    if (!confirming && grant.deadline <= now()) throw expiredError(name);
    grant.ttl = ttl;
    // EXTEND never shortens a lock. But another process may have misjudged its deadline.
    const deadline = deadlineOf(request, extended, ttl);
    grant.deadline = grant.proven ? Math.max(grant.deadline, deadline) : deadline;
    grant.proven = true;
  }

  /** Unlocks the grant. After its deadline, or the timeout, this goes on without the caller. */
  async release(grant) {
    const left = grant.proven ? grant.deadline - now() : Infinity;
    const result = await within(this.unlock(grant), Math.min(left, this.#settings.timeout));
    if (result !== LATE) return result;
    throw this.trouble ?? new UnavailableError(`${grant.name}: no answer to UNLOCK in time`);
  }

  /**
   * Releases the grant; repeats the request after a broken connection. Throws LostError if the lock
   * had ended before.
   */
  async unlock(grant) {
    const until = now() + this.#settings.timeout;
    const { name, token, hold } = grant;
    this.#unlocking++;
    grant.unlocking = true;
    try {
      for (;;) {
        let error;
        const repeated = grant.unlockSent;
        const request = new Request(`UNLOCK ${name} ${token}`, this.#settings.timeout);
        try {
          const own = hold?.link;
          await this.#ask(request, own?.alive && !repeated ? own : undefined);
          // An earlier UNLOCK without a reply may have released the lock.
          if (request.reply === 'OK' || (repeated && request.reply === 'GONE'))
            return new ExecutionResult(request.link.url);
          throw this.#refusal(request, name);
        } catch (failure) {
          error = failure;
        } finally {
          // After LIMIT it was not carried out. But a HOLD may have ended with its connection since.
          const mayBeCarriedOut = error?.outcome !== 'LIMIT' || hold !== null;
          if (request.sentAt > 0 && mayBeCarriedOut) grant.unlockSent = true;
        }
        const pause = retryPause(this.#settings);
        // quit() waits for no daemon to come back.
        const isOver = now() + pause >= until || (this.#quit && this.trouble !== null);
        if (!(error instanceof UnavailableError) || isOver) {
          // Without an UNLOCK, only the end of the connection ends a HOLD.
          if (hold?.link) this.#retire(hold.link);
          throw error;
        }
        await sleep(pause);
      }
    } finally {
      hold?.link?.forget(token);
      if (--this.#unlocking === 0) this.#onUnlocked?.();
      // A lock may be released after quit(), over a connection of its own.
      if (this.#quit && this.#unlocking === 0) for (const link of this.#links) link.quit();
    }
  }

  get hasQuit() {
    return this.#quit !== null;
  }

  /** Ends all connections: LOCKs that wait are undone, and HOLDs are released. */
  quit() {
    this.#quit ??= this.#end();
    return this.#quit;
  }

  async #end() {
    // LOCKs that do not fit on a new connection, and UNLOCKs, can open another one.
    while (this.#opening !== null || this.#links.size > 0 || this.#unlocking > 0) {
      await this.#opening?.catch(() => {});
      const links = [...this.#links];
      for (const link of links) link.quit();
      await Promise.all(links.map((link) => link.closed));
      if (this.#unlocking > 0) await new Promise((resolve) => (this.#onUnlocked = resolve));
    }
  }

  // --- events of the connections ---

  onWarning(resource, reason) {
    this.#events.onWarning(resource, reason);
  }

  onSilence(link) {
    this.#avoid(link);
  }

  onClosed(link) {
    this.#links.delete(link);
    if (this.#current === link) this.#current = null;
  }

  // --- connections ---

  #usableLink() {
    return this.#current?.usable ? this.#current : null;
  }

  /** Sends the request over this connection, or else over a usable one. */
  #ask(request, link = this.#usableLink()) {
    return link !== null ? link.ask(request) : this.#connectAndAsk(request);
  }

  async #connectAndAsk(request) {
    let link = null;
    while (link === null) {
      // All requests that need a connection share one attempt to open it, and may fill it.
      this.#opening ??= this.#open().finally(() => (this.#opening = null));
      link = await this.#opening;
      if (link.alive && !link.usable) link = this.#usableLink();
    }
    if (request.abandoned) throw new ExecutionError('the request was cancelled');
    await link.ask(request);
  }

  async #open() {
    if (this.#failures > 0) {
      const backoff = Math.min(BACKOFF_MIN_MS * 2 ** (this.#failures - 1), BACKOFF_MAX_MS);
      await sleep(backoff * (0.5 + Math.random() / 2));
    }
    const at = now();
    const errors = [];
    const settings = { ...this.#settings, secret: this.#secret() };
    const isAvoided = ({ avoidUntil }) => avoidUntil > at;
    const avoided = this.#addresses.filter(isAvoided);
    const preferred = this.#addresses.filter((address) => !isAvoided(address));
    for (const address of [...preferred, ...avoided]) {
      try {
        const link = await Link.open(address, settings, this);
        this.#failures = 0;
        this.#reached = true;
        this.trouble = null;
        this.#links.add(link);
        this.#current?.retire();
        this.#current = link;
        return link;
      } catch (error) {
        address.avoidUntil = now() + AVOID_MS;
        errors.push(error);
      }
    }
    this.#failures++;
    const message = errors.map((error) => error.message).join('; ');
    const Type = errors.some((error) => error instanceof DeniedError)
      ? DeniedError
      : UnavailableError;
    this.trouble = new Type(message, { cause: errors.at(-1), url: this.#addresses[0].url });
    throw this.trouble;
  }

  /** Reads the file at each attempt, so a secret can be changed while the client runs. */
  #secret() {
    const { secret, secretFile } = this.#settings;
    if (secretFile === undefined) return secret ?? null;
    try {
      return checkSecret(fs.readFileSync(secretFile, 'utf8').trimEnd());
    } catch (cause) {
      throw new DeniedError(`the secret file cannot be used: ${cause.message}`, { cause });
    }
  }

  #retire(link) {
    if (this.#current === link) this.#current = null;
    link.retire();
  }

  #avoid(link) {
    for (const address of this.#addresses)
      if (address.url === link.url) address.avoidUntil = now() + AVOID_MS;
    this.#retire(link);
  }

  #refusal({ reply, link }, name) {
    const error = replyError(reply, name, link.url);
    if (error.outcome === undefined) link.distrust();
    if (error.outcome === 'SHUTDOWN') {
      error.broken = true;
      this.#avoid(link);
    }
    return error;
  }

  #checkOpen() {
    if (this.#quit) throw new UnavailableError('the client was closed');
  }
}

/**
 * Until when a reply is good. A lock cannot be granted after the arrival of the reply, or for longer
 * than its TTL, whatever the reply says.
 */
function deadlineOf({ sentAt }, { validityMs, elapsedMs }, ttl) {
  return Math.min(sentAt + elapsedMs, now()) + Math.min(validityMs, ttl);
}

function retryPause({ retryDelay, retryJitter }) {
  return Math.max(0, retryDelay + (Math.random() * 2 - 1) * retryJitter);
}

/**
 * After LATE, and while redlockd is away, another LOCK may succeed. After 24 hours, so may another
 * wait.
 */
function canRetryLock(error) {
  if (error instanceof LostError) return false;
  return isAway(error) || error.outcome === 'LATE' || error.outcome === 'HELD';
}

function canRetryExtend(error) {
  return isAway(error) || error.outcome === 'NOQUORUM' || error.outcome === 'LATE';
}

/** A redlockd that answers LIMIT is there, and has rejected the request. */
function isAway(error) {
  return error instanceof UnavailableError && error.outcome !== 'LIMIT';
}

function throwIfAborted(signals) {
  for (const signal of signals) if (signal.aborted) throw signal.reason;
}

const LATE = Symbol('late');

/** The result of the promise, or LATE if it takes longer than this many milliseconds. */
function within(promise, ms) {
  let timer;
  const late = new Promise((resolve) => {
    // A timer fires up to 1 ms early.
    timer = setTimeout(resolve, Math.max(0, Math.ceil(ms) + 1), LATE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
