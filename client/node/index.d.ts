/// <reference types="node" />
import { EventEmitter } from 'node:events';
import type { ConnectionOptions } from 'node:tls';

/**
 * What redlock 5 reports for each attempt. redlockd has the only vote; its address stands for it.
 */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<string>;
  readonly votesAgainst: Map<string, Error>;
}

export interface ExecutionResult {
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Settings of a Redlock, and of a single acquire() or using(). All durations are milliseconds. */
export interface AcquireSettings {
  /** Ignored: redlockd accounts for clock drift. */
  readonly driftFactor: number;
  /** With retryDelay: how long to wait in line for the lock. -1: without end. 0: do not wait. */
  readonly retryCount: number;
  /** Also the pause before a request is sent again that redlockd could not serve. */
  readonly retryDelay: number;
  /** That pause is longer or shorter by up to this much. */
  readonly retryJitter: number;
  /** using() extends the lock after a third of its duration, or when less than this is left. */
  readonly automaticExtensionThreshold: number;
  /** How long to wait in line. Takes the place of retryCount x retryDelay. */
  readonly wait?: number;
  /** Request a fencing token: `lock.fence`. */
  readonly fence?: boolean;
  /** redlockd keeps the lock while the connection lives, and releases it when this process ends. */
  readonly hold?: boolean;
  /** A hold that outlives a killed process until the end of its TTL. */
  readonly linger?: boolean;
  /** Acquire one of this many slots, 1 to 1000, instead of the resource itself. */
  readonly slots?: number;
  /** Aborting it cancels acquire(). */
  readonly signal?: AbortSignal;
}

export interface Settings extends Omit<AcquireSettings, 'signal'> {
  /** The secret of a user of redlockd. */
  readonly secret?: string;
  /** A file with the secret. It is read for each new connection. */
  readonly secretFile?: string;
  /** Names the connections in redlockd's listings: 1 to 32 of A-Z a-z 0-9 _ . : - */
  readonly name?: string;
  /** For tls:// addresses: ca, cert, key and others of tls.connect(). */
  readonly tls?: ConnectionOptions;
  /** Limit for a reply, without the wait in line, and for reaching the first redlockd; 5000. */
  readonly timeout?: number;
  /** Limit for opening a connection to one address. Default: 2000. */
  readonly connectTimeout?: number;
}

export interface ErrorDetails {
  readonly outcome?: string;
  readonly cause?: unknown;
  readonly url?: string;
  readonly hint?: number;
  readonly reason?: string;
  readonly limit?: string;
}

/** The operation failed. The base of all errors of this package, except for wrong arguments. */
export class ExecutionError extends Error {
  constructor(
    message: string,
    attempts?: ReadonlyArray<Promise<ExecutionStats>>,
    details?: ErrorDetails,
  );
  /** The first word of redlockd's reply: HELD, NOQUORUM, LATE, GONE, ERR, LIMIT, ... */
  readonly outcome: string | undefined;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Another client holds the lock. */
export class ResourceLockedError extends ExecutionError {
  constructor(message: string, details?: ErrorDetails);
  /** In how many milliseconds the lock can be free; -1 if that is unknown. */
  readonly hint: number;
}

/** Too few masters could vote. */
export class NoQuorumError extends ExecutionError {
  constructor(message: string, details?: ErrorDetails);
}

/** The lock is not held any more: stop the work. */
export class LostError extends ExecutionError {
  constructor(message: string, details?: ErrorDetails);
  /**
   * gone (released or broken by another client), expired, closed (the connection of a hold ended),
   * unextended (automatic extension failed), released (by this process), or a reason of LOST.
   */
  readonly reason: string;
}

/** The secret is wrong or missing, or this user lacks the permission. */
export class DeniedError extends ExecutionError {
  constructor(message: string, details?: ErrorDetails);
}

/** No redlockd could be reached, or it cannot serve the request now. */
export class UnavailableError extends ExecutionError {
  constructor(message: string, details?: ErrorDetails);
  /** The limit of redlockd that was reached, for example `waiters`, if that is why. */
  readonly limit: string | undefined;
}

/** Aborted when the lock is lost; `error` and `reason` are then the LostError. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

export class Lock {
  /**
   * For a lock that another process has acquired; `value` and `expiration` are those of its Lock.
   */
  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    expiration: number,
  );
  readonly redlock: Redlock;
  /** With the setting `slots`, the names of the granted slots. */
  readonly resources: string[];
  /** The lock tokens, separated by commas. Keep them secret. */
  readonly value: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  /** When `remaining` will be 0, as milliseconds since the epoch; 0 if it is 0 already. */
  readonly expiration: number;
  /**
   * Milliseconds until another client can have the lock, on a clock that counts suspend. After a
   * loss, this is the time in which the work has to stop.
   */
  readonly remaining: number;
  /** Aborted when the lock is lost. */
  readonly signal: RedlockAbortSignal;
  /** The fencing token of the only resource; null if none was requested. */
  readonly fence: number | null;
  /** The fencing token of each resource. */
  readonly fences: Array<number | null>;
  /** Throws LostError if the lock had ended before; at once if `signal` is aborted. */
  release(): Promise<ExecutionResult>;
  /** Extends this lock to last `duration` from now, and returns it. */
  extend(duration: number): Promise<Lock>;
}

export interface Warning {
  readonly resource: string;
  /** A master that holds a key of the lock and cannot vote any more, and why. */
  readonly reason: string;
}

export class Redlock extends EventEmitter {
  /** urls: tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH; several in order of preference. */
  constructor(urls: string | Iterable<string>, settings?: Partial<Settings>);
  readonly settings: Settings;
  acquire(
    resources: string | Iterable<string>,
    duration: number,
    settings?: Partial<AcquireSettings>,
  ): Promise<Lock>;
  /** `settings` are those of redlock 5, and ignored: `timeout` limits how long both try. */
  release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult>;
  extend(lock: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock>;
  using<T>(
    resources: string | Iterable<string>,
    duration: number,
    routine: (signal: RedlockAbortSignal, lock: Lock) => Promise<T>,
  ): Promise<T>;
  using<T>(
    resources: string | Iterable<string>,
    duration: number,
    settings: Partial<AcquireSettings>,
    routine: (signal: RedlockAbortSignal, lock: Lock) => Promise<T>,
  ): Promise<T>;
  /** Closes the connections. Waiting requests fail, and holds are released; other locks live on. */
  quit(): Promise<void>;

  on(event: 'error', listener: (error: Error) => void): this;
  on(event: 'warning', listener: (warning: Warning) => void): this;
  on(event: string | symbol, listener: (...args: any[]) => void): this;
}

export default Redlock;
