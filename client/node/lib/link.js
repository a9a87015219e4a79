// One connection to one redlockd: many requests at a time, each with a tag.
import net from 'node:net';
import tls from 'node:tls';

import { now } from './clock.js';
import { LostError, UnavailableError } from './errors.js';
import { LINE_MAX, lossError, replyError } from './protocol.js';

// redlockd allows 1024 pending requests on a connection. The rest is for requests that must use the
// connection of their HOLD.
const PENDING_FULL = 1000;

// Parts of the timeout after which silence is questioned with a PING, and is taken for the end.
// Ticks are counted instead of milliseconds, because this process itself may have been stopped.
const TICKS_PER_TIMEOUT = 6;
const SILENT_TICKS_MAX = 3;

const UNKNOWN_ISSUER = [
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
];

const NOT_REDLOCKD = "the peer does not speak redlockd's protocol";

/** A request under way. The promise of Link.ask() resolves with it once `reply` is there. */
export class Request {
  reply = '';
  sentAt = 0;
  link = null; // over which it was sent
  resolve = null;
  reject = null;
  abandoned = false;
  onLate = null; // called if the reply comes after the request was abandoned
  done = false; // has a reply, or never gets one

  /**
   * limitMs: how long to wait for the reply. The rest belongs to a LOCK: its resource, its slots,
   * and a Hold if it says HOLD.
   */
  constructor(text, limitMs, name = null, slots = undefined, hold = null) {
    this.text = text;
    this.limitMs = limitMs;
    this.name = name;
    this.slots = slots;
    this.hold = hold;
  }
}

/** A lock that redlockd holds for a connection. It is lost once `error` is set. */
export class Hold {
  link = null;
  error = null;
  ended = false; // another client can have the lock already, whatever its deadline
  onLost = null;

  constructor(linger) {
    this.linger = linger;
  }

  lose(error, ended) {
    this.ended ||= ended;
    this.error ??= error;
    this.onLost?.(this.error);
  }
}

export class Link {
  retired = false; // gets no new requests, except those about its HOLDs
  heardAt = 0; // when the last input arrived
  holds = new Map(); // by token

  #owner;
  #conn;
  #pending = new Map(); // by tag
  #living = 0; // pending requests without those that were abandoned
  #tags = 0;
  #output = '';
  #outputAt = 0; // when the first request of the output was added
  #input = '';
  #ticker;
  #silentTicks = 0;
  #pinging = false;
  #deaf = false; // what comes from the peer counts no more
  #ready = false; // connected, and the certificate is good
  #quitting = false;
  #ending = false;
  #closed = false;
  #onClosed;
  #error = null;

  /** Connects, authenticates and makes sure that the peer is redlockd. */
  static async open(address, settings, owner) {
    const link = new Link(address, settings, owner);
    const timer = setTimeout(
      () => link.destroy(`no answer within ${settings.connectTimeout} ms`),
      settings.connectTimeout,
    );
    try {
      await link.#greet(settings);
      return link;
    } catch (error) {
      link.#conn.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  constructor(address, settings, owner) {
    this.url = address.url;
    this.#owner = owner;
    this.closed = new Promise((resolve) => (this.#onClosed = resolve));
    this.#conn = connect(address, settings.tls)
      .setEncoding('utf8')
      .on(address.tls ? 'secureConnect' : 'connect', () => this.#onReady())
      .on('data', (text) => this.#onData(text))
      .on('error', (error) => (this.#error ??= this.#failure(describe(error), error)))
      .on('close', () => this.#onClose());
    this.#ticker = setInterval(() => this.#onTick(), settings.timeout / TICKS_PER_TIMEOUT);
    this.closeTimeout = settings.timeout;
  }

  /** Whether new requests may use this connection. */
  get usable() {
    return !this.retired && !this.#ending && !this.#closed && this.#pending.size < PENDING_FULL;
  }

  /** Whether redlockd still holds the HOLDs of this connection. */
  get alive() {
    return !this.#ending && !this.#closed;
  }

  /**
   * Sends the request in one write with all others of this pass of the event loop. The promise
   * rejects with UnavailableError if no reply can come any more.
   */
  ask(request) {
    return new Promise((resolve, reject) => {
      request.link = this;
      request.resolve = resolve;
      request.reject = reject;
      if (!this.alive) {
        reject(this.#failure('the connection has ended'));
        return;
      }
      const tag = ++this.#tags;
      // Before the write, so a slow reply cannot make a deadline later. One time for all requests
      // of a pass of the event loop saves 5 % of the client's time with 64 locks in flight.
      if (this.#output === '') this.#outputAt = now();
      request.sentAt = this.#outputAt;
      this.#pending.set(tag, request);
      this.#living++;
      this.#write(`#${tag} ${request.text}\n`);
    });
  }

  /** Rejects the request. Its reply can still come: see onLate. */
  abandon(request, error) {
    if (request.abandoned || request.done) return;
    request.abandoned = true;
    this.#living--;
    request.reject(error);
    this.#endIfUnused();
  }

  /**
   * No new requests. Once no request and no HOLD needs the connection, it ends: that undoes LOCKs.
   */
  retire() {
    this.retired = true;
    this.#endIfUnused();
  }

  /**
   * Ends the connection after the replies to UNLOCK and EXTEND; undoes LOCKs and releases HOLDs.
   */
  quit() {
    if (this.#closed) return;
    this.#quitting = true;
    const error = new UnavailableError('the client was closed', { url: this.url });
    for (const request of this.#pending.values())
      if (request.name !== null) this.abandon(request, error);
    // Before QUIT is sent, because redlockd then releases them.
    this.#loseHolds(error, () => true);
    this.#endIfUnused();
  }

  /** Drops the connection, which does not work as it should. */
  destroy(why) {
    this.#error ??= this.#failure(why);
    this.#conn.destroy();
  }

  // --- output ---

  #write(text) {
    if (this.#output === '') process.nextTick(() => this.#flush());
    this.#output += text;
  }

  #flush() {
    if (!this.#ready || this.#output === '') return;
    if (!this.#conn.writableEnded) this.#conn.write(this.#output);
    this.#output = '';
  }

  #onReady() {
    this.#ready = true;
    this.#flush();
  }

  /**
   * QUIT also releases the HOLDs over TLS. The replies that redlockd has sent before it still
   * arrive, so an OK to an abandoned LOCK is not overlooked.
   */
  #endIfUnused() {
    const unused = this.#quitting || (this.retired && this.holds.size === 0);
    if (!unused || this.#living > 0 || this.#ending || this.#closed) return;
    this.#ending = true;
    this.#conn.end(`${this.#output}#quit QUIT\n`);
    this.#output = '';
    setTimeout(() => this.#conn.destroy(), this.closeTimeout).unref();
  }

  // --- input ---

  #onData(text) {
    if (this.#deaf) return;
    this.heardAt = now();
    this.#silentTicks = 0;
    this.#pinging = false;
    if (this.#input !== '') text = this.#input + text;
    let from = 0;
    for (let end; (end = text.indexOf('\n', from)) !== -1; from = end + 1) {
      if (this.#conn.destroyed || this.#deaf) return;
      this.#onLine(text.slice(from, end));
    }
    this.#input = from === text.length ? '' : text.slice(from);
    if (this.#input.length > LINE_MAX) this.distrust();
  }

  #onLine(line) {
    if (line.charCodeAt(0) !== 0x23) {
      this.#onUntagged(line);
      return;
    }
    const space = line.indexOf(' ');
    const tag = Number(line.slice(1, space));
    const request = this.#pending.get(tag);
    if (request !== undefined) {
      this.#pending.delete(tag);
      request.reply = line.slice(space + 1);
      this.#settle(request);
    } else if (!line.startsWith('#quit ')) {
      this.distrust();
    }
  }

  #settle(request) {
    request.done = true;
    if (request.abandoned) {
      request.onLate?.();
      return;
    }
    this.#living--;
    if (request.hold !== null && request.reply.startsWith('OK ')) {
      // Here and not where the caller continues: LOST may follow in the same packet.
      request.hold.link = this;
      this.holds.set(request.reply.slice(3, 43), request.hold);
    }
    request.resolve(request);
    if (this.retired || this.#quitting) this.#endIfUnused();
  }

  #onUntagged(line) {
    const [first, kind, name, token, reason = ''] = line.split(' ');
    if (first === '!' && kind === 'LOST') {
      this.holds.get(token)?.lose(lossError(name, reason, this.url), reason === 'gone');
      this.forget(token);
    } else if (first === '!' && kind === 'WARN') {
      if (this.holds.has(token)) this.#owner.onWarning(name, reason);
    } else if (first === 'LIMIT' || first === 'DENIED') {
      // Only as the last line of a connection. What it means for the next one, that one will tell.
      this.destroy(line);
    } else if (first !== '!') {
      this.distrust();
    }
  }

  /**
   * The peer does not speak the protocol. Its HOLDs are lost, but a clean end of the connection would
   * release them at once, while the work under them still stops. So the connection stays until all
   * of them are released.
   */
  distrust() {
    if (this.holds.size === 0) {
      this.destroy(NOT_REDLOCKD);
      return;
    }
    this.#deaf = true;
    this.#loseHolds(this.#failure(NOT_REDLOCKD), () => false);
    this.#onSilence(NOT_REDLOCKD);
  }

  /** The caller does not need the HOLD any more. */
  forget(token) {
    this.holds.delete(token);
    this.#endIfUnused();
  }

  // --- the life of the connection ---

  async #greet({ secret, name, timeout }) {
    const auth = secret === null ? null : this.ask(new Request(`AUTH ${secret}`, timeout));
    if (name !== undefined) this.ask(new Request(`NAME ${name}`, timeout)).catch(() => {});
    const version = this.ask(new Request('VERSION', timeout));
    version.catch(() => {}); // if AUTH fails, nobody waits for it
    if (auth !== null && (await auth).reply !== 'OK')
      throw replyError((await auth).reply, '', this.url);
    if (!(await version).reply.startsWith('VERSION 1 '))
      throw this.#failure('the peer does not speak version 1 of the protocol');
  }

  #onTick() {
    const at = now();
    for (const request of this.#pending.values())
      if (at - request.sentAt >= request.limitMs)
        this.abandon(request, this.#failure('no answer in time'));
    const idle = this.#living === 0 && this.holds.size === 0;
    this.#silentTicks = idle ? 0 : this.#silentTicks + 1;
    if (this.#silentTicks > SILENT_TICKS_MAX) {
      this.#onSilence();
    } else if (!idle && !this.#pinging && this.alive) {
      // A wait is silent for long, so only a PING shows whether the peer lives.
      this.#pinging = true;
      this.ask(new Request('PING', Infinity)).catch(() => {});
    }
  }

  /**
   * The peer has stopped, or the network is cut. Requests go elsewhere. A connection with HOLDs
   * stays: the end of it could release them while the work under them still runs. Each of these
   * locks is lost at its own deadline, and once all are released, the connection ends.
   */
  #onSilence(why = 'no answer in time') {
    const error = this.#failure(why);
    this.#owner.onSilence(this);
    for (const request of this.#pending.values()) this.abandon(request, error);
    if (this.holds.size === 0) this.destroy(why);
  }

  #onClose() {
    this.#closed = true;
    clearInterval(this.#ticker);
    const error = this.#error ?? this.#failure('the connection was closed');
    for (const request of this.#pending.values()) {
      request.done = true;
      request.reject(error);
    }
    this.#pending.clear();
    // redlockd may have seen a clean end, which releases a HOLD at once.
    this.#loseHolds(error, (hold) => !hold.linger);
    this.holds.clear();
    this.#onClosed();
    this.#owner.onClosed(this);
  }

  #loseHolds(cause, hasEnded) {
    const details = { reason: 'closed', cause, url: this.url };
    for (const hold of this.holds.values())
      hold.lose(new LostError('the connection of the HOLD has ended', details), hasEnded(hold));
  }

  #failure(why, cause) {
    const error = new UnavailableError(`${this.url}: ${why}`, { cause, url: this.url });
    error.broken = true;
    return error;
  }
}

function describe({ message, code }) {
  return UNKNOWN_ISSUER.includes(code) ? `${message}; set tls.ca` : message;
}

function connect({ path, host, port, tls: secure }, options) {
  if (path !== undefined) return net.connect({ path });
  // autoSelectFamily: try the next address of a name such as localhost if the first one fails.
  const where = { host, port, autoSelectFamily: true };
  // The environment variable NODE_TLS_REJECT_UNAUTHORIZED is meant for other connections.
  const checked = { rejectUnauthorized: true, ...options, ...where };
  const conn = secure ? tls.connect(checked) : net.connect(where);
  return conn.setNoDelay(true).setKeepAlive(true);
}
