// The errors of this client. A failed operation throws an ExecutionError or one of its subclasses.

// redlock 5 reports the votes of its clients for each attempt. Here one redlockd has the only vote.
function attemptsOf(url, error) {
  const stats = {
    membershipSize: 1,
    quorumSize: 1,
    votesFor: new Set(error ? [] : [url]),
    votesAgainst: new Map(error ? [[url, error]] : []),
  };
  return [Promise.resolve(stats)];
}

export class ExecutionResult {
  #url;

  constructor(url) {
    this.#url = url;
  }

  get attempts() {
    return attemptsOf(this.#url);
  }
}

/** The operation failed. `outcome` is the first word of redlockd's reply, if there was one. */
export class ExecutionError extends Error {
  #attempts;

  constructor(message, attempts, { outcome, cause, url = '' } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.outcome = outcome;
    this.#attempts = attempts ?? attemptsOf(url, this);
  }

  get name() {
    return this.constructor.name;
  }

  get attempts() {
    return this.#attempts;
  }
}

/**
 * Another client holds the lock. `hint` says in how many milliseconds it can be free; -1: unknown.
 */
export class ResourceLockedError extends ExecutionError {
  constructor(message, details) {
    super(message, undefined, details);
    this.hint = details?.hint ?? -1;
  }
}

/** Too few masters could vote. The message has their reasons. */
export class NoQuorumError extends ExecutionError {
  constructor(message, details) {
    super(message, undefined, details);
  }
}

/**
 * The lock is not held any more. `reason` is the reason of a LOST line, or gone (released or broken
 * by another client), expired, closed (the connection of a HOLD ended) or unextended (automatic
 * extension failed; `cause` says why).
 */
export class LostError extends ExecutionError {
  constructor(message, details) {
    super(message, undefined, details);
    this.reason = details?.reason ?? 'expired';
  }
}

/** The secret is wrong or missing, or this user may not do this. */
export class DeniedError extends ExecutionError {
  constructor(message, details) {
    super(message, undefined, details);
  }
}

/**
 * No redlockd could be reached, or it does not serve the request now. `limit` is the limit that was
 * reached, as redlockd names it, if that is why.
 */
export class UnavailableError extends ExecutionError {
  constructor(message, details) {
    super(message, undefined, details);
    this.limit = details?.limit;
  }
}
