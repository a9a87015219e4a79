export { Redlock, Redlock as default } from './lib/redlock.js';
export { Lock } from './lib/lock.js';
export {
  DeniedError,
  ExecutionError,
  LostError,
  NoQuorumError,
  ResourceLockedError,
  UnavailableError,
} from './lib/errors.js';
