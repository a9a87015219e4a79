// The scenarios of client/scenarios.md that need a daemon with users.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import util from 'node:util';
import { after, afterEach, before, test } from 'node:test';

import { DeniedError } from '../index.js';
import { Cluster, DEADLINE_MS } from './cluster.js';

const cluster = new Cluster();
const timeout = DEADLINE_MS;
before(() => cluster.start({ users: true }), { timeout });
afterEach(() => cluster.closeClients());
after(() => cluster.end());

const urls = () => [cluster.started.daemons[0].tcp]; // no user by the unix socket

test('secret', { timeout }, async () => {
  const { secret, secret_file: secretFile } = cluster.started;
  for (const settings of [{ secret }, { secretFile }]) {
    const client = cluster.client(settings, urls());
    await (await client.acquire([cluster.name()], 30_000)).release();
  }
});

test('wrong_secret', { timeout }, async () => {
  const secret = 'not-the-right-secret';
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'redlockd-node.'));
  const secretFile = path.join(folder, 'secret');
  fs.writeFileSync(secretFile, `${secret}\n`);
  const missing = path.join(folder, 'missing');
  try {
    for (const settings of [{ secret }, { secretFile }, {}, { secretFile: missing }]) {
      const client = cluster.client({ ...settings, retryCount: -1 }, urls());
      await assert.rejects(client.acquire([cluster.name()], 30_000), (error) => {
        assert.ok(error instanceof DeniedError, error.stack);
        if (Object.keys(settings).length === 0)
          assert.match(error.message, /authenticate first.*; set secret or secretFile$/);
        assert.ok(!util.inspect(error, { depth: 10, showHidden: true }).includes(secret));
        return true;
      });
      assert.ok(!util.inspect(client, { depth: 10 }).includes(secret));
    }
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
