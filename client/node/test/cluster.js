// Real masters and daemons (tests/clients/fixture.py), and what the tests ask of them directly.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import net from 'node:net';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

import Redlock from '../index.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export const DEADLINE_MS = 60_000; // for tests that hang; nothing relies on its value

export class Cluster {
  #fixture;
  #replies;
  #clients = [];
  #names = 0;

  constructor() {
    const argv = [
      `${ROOT}tests/clients/fixture.py`,
      '--build',
      process.env.BUILD ?? `${ROOT}build`,
    ];
    this.#fixture = spawn('python3', argv, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#replies = readline.createInterface({ input: this.#fixture.stdout });
    this.#replies = this.#replies[Symbol.asyncIterator]();
  }

  /** Carries out one command of the fixture. */
  async run(...words) {
    this.#fixture.stdin.write(`${words.join(' ')}\n`);
    const { value, done } = await this.#replies.next();
    assert.ok(!done, 'the fixture has ended');
    const reply = JSON.parse(value);
    assert.ok(reply.ok, reply.error);
    return reply;
  }

  async start(options) {
    this.started = await this.run('start', JSON.stringify(options));
    this.urls = this.started.daemons.map(({ unix }) => unix);
    return this;
  }

  async end() {
    await this.closeClients();
    const ended = new Promise((resolve) => this.#fixture.once('exit', resolve));
    this.#fixture.stdin.end();
    await ended;
  }

  /** A client of daemon 0, or of the given addresses. It is closed after the test. */
  client(settings = {}, urls = this.urls.slice(0, 1)) {
    const client = new Redlock(urls, { retryCount: 0, connectTimeout: 10_000, ...settings });
    this.#clients.push(client);
    return client;
  }

  async closeClients() {
    await Promise.all(this.#clients.splice(0).map((client) => client.quit()));
  }

  /** A resource that no other test uses. */
  name() {
    return `test-${process.pid}-${++this.#names}`;
  }

  async redlock(...words) {
    return this.run('redlock', JSON.stringify(words));
  }

  /** The lines of the reply of a daemon, without the END of a listing. */
  async ask(request, daemon = 0) {
    const conn = net.connect({ path: this.urls[daemon].slice('unix:'.length) });
    let text = '';
    conn.setEncoding('utf8').on('data', (part) => (text += part));
    conn.write(`${request}\nQUIT\n`);
    await new Promise((resolve, reject) => conn.on('close', resolve).on('error', reject));
    return text.split('\n').filter((line) => !/^(BYE|END|)$/.test(line));
  }

  async waiters(name, daemon = 0) {
    const [line = ''] = await this.ask(`LOCKS ${name}`, daemon);
    return Number(/ waiters=(\d+)/.exec(line)?.[1] ?? 0);
  }

  async waitForWaiter(name, daemon = 0) {
    await until(async () => (await this.waiters(name, daemon)) > 0);
  }

  /** Asks again while the masters do not answer the daemon in time. */
  async isFree(name, daemon = 0) {
    let status;
    await until(async () => {
      [status] = (await this.ask(`STATUS ${name}`, daemon))[0].split(' ');
      return status === 'FREE' || status === 'HELD';
    });
    return status === 'FREE';
  }
}

/** Waits until the condition holds. The time limit of the test is the limit of the wait. */
export async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

export function aborted(signal) {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

/** A daemon that answers as the test says. It handles the greeting and PING by itself. */
export class ScriptedDaemon {
  #server;
  #requests = [];
  #waiting = [];
  conns = new Set();
  accepted = 0;
  packets = 0;
  greet = (reply) => reply('VERSION 1 redlockd/scripted');
  pongs = true; // false: falls silent
  refuses = 0; // connections to end at once

  static async start() {
    const daemon = new ScriptedDaemon();
    await new Promise((resolve) => daemon.#server.listen(0, '127.0.0.1', resolve));
    daemon.#server.unref(); // a test that fails may not end it
    daemon.url = `tcp://127.0.0.1:${daemon.#server.address().port}`;
    return daemon;
  }

  constructor() {
    this.#server = net.createServer({ allowHalfOpen: true }, (conn) => {
      if (this.refuses > 0) {
        this.refuses--;
        conn.destroy();
        return;
      }
      this.accepted++;
      conn.unref();
      this.conns.add(conn);
      let input = '';
      conn.setEncoding('utf8').on('error', () => {});
      conn.on('close', () => this.conns.delete(conn));
      conn.on('data', (text) => {
        this.packets++;
        const lines = (input + text).split('\n');
        input = lines.pop();
        for (const line of lines) this.#onLine(conn, line);
      });
      conn.on('end', () => this.#onLine(conn, '#end END'));
    });
  }

  #onLine(conn, line) {
    const [, tag, text] = /^#(\S+) (.*)$/.exec(line);
    const reply = (words) => conn.write(`#${tag} ${words}\n`);
    if (text === 'VERSION') this.greet(reply);
    else if (text === 'PING') this.pongs && reply('PONG');
    else if (/^(NAME|AUTH) /.test(text)) reply('OK');
    else if (text === 'QUIT') conn.end(`#${tag} BYE\n`);
    else if (text === 'END') conn.end();
    else this.#deliver({ text, words: text.split(' '), tag, conn, reply });
  }

  #deliver(request) {
    const next = this.#waiting.shift();
    if (next) next(request);
    else this.#requests.push(request);
  }

  /** The next request of any connection: {text, words, conn, reply(words)}. */
  next() {
    if (this.#requests.length > 0) return Promise.resolve(this.#requests.shift());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Requests that no call of next() has taken. */
  get untaken() {
    return this.#requests.length;
  }

  async end() {
    for (const conn of this.conns) conn.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
