// The requests and replies of docs/protocol.txt. Pure.
import {
  DeniedError,
  ExecutionError,
  LostError,
  NoQuorumError,
  ResourceLockedError,
  UnavailableError,
} from './errors.js';

export const WAIT_MAX_MS = 24 * 3600 * 1000;
export const LINE_MAX = 2048;
const NAME_MAX = 256;
const SLOTS_MAX = 1000;

// \p{Cs} is half of a surrogate pair, which UTF-8 cannot encode.
const NAME = /^[^\0-\x20\x7f\p{Cs}]+$/u;
const SECRET = /^[\x21-\x7e\x80-\uffff]{1,256}$/;
const TOKEN = /^[0-9a-f]{40}$/;
const LABEL = /^[A-Za-z0-9_.:-]{1,32}$/;

// --- arguments; all checks come before anything is sent ---

export function checkNames(resources, slots) {
  let names = typeof resources === 'string' ? [resources] : [...resources];
  if (names.length > 1) names = [...new Set(names)];
  if (names.length === 0) throw new TypeError('at least one resource is required');
  if (slots !== undefined && !(Number.isInteger(slots) && slots >= 1 && slots <= SLOTS_MAX))
    throw new RangeError(`slots must be an integer from 1 to ${SLOTS_MAX}`);
  const longest = slots === undefined ? NAME_MAX : NAME_MAX - `#${slots}`.length;
  for (const name of names) {
    if (typeof name !== 'string' || !NAME.test(name))
      throw new TypeError('a resource must be a string without spaces and control characters');
    if (Buffer.byteLength(name) > longest)
      throw new RangeError(`a resource must have at most ${longest} bytes`);
  }
  return names;
}

export function checkDuration(duration) {
  if (!Number.isSafeInteger(duration) || duration <= 0)
    throw new RangeError('duration must be a positive integer, in milliseconds');
}

/** The tokens in the value of a Lock. */
export function checkTokens(value, count) {
  const tokens = String(value).split(',');
  if (tokens.length !== count || !tokens.every((token) => TOKEN.test(token)))
    throw new TypeError('value must have a token of 40 hex digits for each resource');
  return tokens;
}

export function checkSecret(secret) {
  if (!SECRET.test(secret)) throw new TypeError('secret must have 1 to 256 bytes and no spaces');
  return secret;
}

export function checkLabel(label) {
  if (!LABEL.test(label)) throw new TypeError('name must be 1 to 32 of A-Z a-z 0-9 _ . : -');
  return label;
}

/** {url, path} or {url, host, port, tls} */
export function parseAddress(url) {
  const unix = /^unix:(\/.+)$/.exec(url);
  if (unix) return { url, path: unix[1] };
  const [, scheme, bracketed, plain, digits] =
    /^(tcp|tls):\/\/(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:/@[\]]+)):(\d{1,5})\/?$/.exec(url) ?? [];
  const port = Number(digits);
  // The text is not quoted: it could contain a password.
  if (!(port >= 1 && port <= 65535))
    throw new TypeError('an address must be tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH');
  return { url, host: bracketed ?? plain, port, tls: scheme === 'tls' };
}

/** JavaScript sorts by UTF-16, other clients by bytes. The orders differ above U+FFFF. */
export function inByteOrder(names) {
  return [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

// --- requests ---

export function lockRequest(name, ttl, waitMs, { slots, fence, hold, linger }) {
  let text = `LOCK ${name} ${ttl}`;
  if (slots !== undefined) text += ` SLOTS ${slots}`;
  if (waitMs > 0) text += ` WAIT ${Math.min(Math.ceil(waitMs), WAIT_MAX_MS)}`;
  if (fence) text += ' FENCE';
  if (hold || linger) text += linger ? ' HOLD LINGER' : ' HOLD';
  return text;
}

// --- replies ---

const GRANT = /^OK ([0-9a-f]{40}) (\d{1,15}) (\d{1,15}) (-|\d{1,16})(?: \S+#(\d{1,4}))?(?: |$)/;
const EXTENSION = /^OK ([0-9a-f]{40}) (\d{1,15}) (\d{1,15})(?: |$)/;

/**
 * The grant in the reply to a LOCK: {name, token, validityMs, elapsedMs, fence}, or null if it is no
 * valid OK.
 */
export function readGrant(reply, name, slots) {
  const words = GRANT.exec(reply);
  if (words === null || (slots !== undefined && words[5] === undefined)) return null;
  return {
    name: slots === undefined ? name : `${name}#${words[5]}`,
    token: words[1],
    validityMs: Number(words[2]),
    elapsedMs: Number(words[3]),
    fence: words[4] === '-' ? null : Number(words[4]),
  };
}

/** {validityMs, elapsedMs} of the reply to an EXTEND of this token; null: it is no valid OK. */
export function readExtension(reply, token) {
  const words = EXTENSION.exec(reply);
  if (words === null || words[1] !== token) return null;
  return { validityMs: Number(words[2]), elapsedMs: Number(words[3]) };
}

// Why a lock is lost, by the reason of LOST.
const LOSSES = {
  __proto__: null,
  noquorum: 'too few masters could vote',
  late: 'the masters answered too late',
  gone: 'the token does not hold it any more',
  limit: 'it was held for as long as the daemon allows (max_hold)',
  overdue: 'the daemon was stopped or too busy',
  shutdown: 'the daemon is stopping',
};

// The limits at which redlockd does not extend a lock any more, by the reply to EXTEND.
const LIMITS = {
  __proto__: null,
  hold: LOSSES.limit,
  extensions: 'it was extended as often as the daemon allows (max_extensions)',
};

/** The error for a LOST line. */
export function lossError(name, reason, url) {
  return new LostError(lossText(name, LOSSES[reason] ?? reason), { reason, url });
}

/** The error for a lock whose deadline has passed. */
export function expiredError(name) {
  return new LostError(lossText(name, 'its time is over'), { reason: 'expired' });
}

/** The error for a lock that was not extended. cause: the last failure, if there was one. */
export function unextendedError(name, cause) {
  const text = cause ? `not extended in time: ${cause.message}` : 'not extended in time';
  const details = { reason: 'unextended', cause };
  return new LostError(lossText(name, LIMITS[cause?.limit] ?? text), details);
}

function lossText(name, why) {
  return `the lock ${name} is lost: ${why}`;
}

function adviceOnSecret(text) {
  return text.startsWith('authenticate first:') ? '; set secret or secretFile' : '';
}

function adviceOnTtl(code) {
  const advice = 'for work that takes longer, let the lock be extended (using)';
  return code === 'ttl-range' ? `; ${advice}` : '';
}

/** The error for a reply that is not OK. */
export function replyError(reply, name, url) {
  const [outcome, ...words] = reply.split(' ');
  const rest = words.join(' ');
  const details = { outcome, url };
  switch (outcome) {
    case 'HELD':
      return new ResourceLockedError(`another client holds ${name}`, {
        ...details,
        hint: Number(words[0] ?? -1),
      });
    case 'NOQUORUM':
      return new NoQuorumError(`${name}: too few masters could vote: ${rest}`, details);
    case 'LATE':
      return new ExecutionError(`${name}: the masters answered too late`, undefined, details);
    case 'GONE':
      return new LostError(lossText(name, LOSSES.gone), { ...details, reason: 'gone' });
    case 'DENIED':
      return new DeniedError(`${url}: ${rest}${adviceOnSecret(rest)}`, details);
    case 'ERR':
      return new ExecutionError(
        `redlockd rejected the request: ${rest}${adviceOnTtl(words[0])}`,
        undefined,
        details,
      );
    case 'LIMIT':
      return new UnavailableError(`${url}: a limit was reached: ${rest}`, {
        ...details,
        limit: rest,
      });
    case 'SHUTDOWN':
      return new UnavailableError(`${url} is stopping`, details);
    default:
      return new UnavailableError(`${url} does not speak redlockd's protocol`, { url });
  }
}
