// etcd's own lock service (v3lockpb.Lock), by gRPC on one HTTP/2 connection. In etcd a lock has no TTL of its
// own; it belongs to a lease. Each client therefore gets a lease before the measurement.
import http2 from 'node:http2';

const LEASE_S = 600;

// --- just enough of protocol buffers: fields of bytes and of integers ---

function varint(number) {
  const bytes = [];
  let rest = BigInt(number);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

const integerField = (field, number) => Buffer.concat([varint(field << 3), varint(number)]);
const bytesField = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

function fields(message) {
  const found = {};
  let at = 0;
  function integer() {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      number |= BigInt(byte & 127) << shift;
      if (byte < 128) return number;
    }
  }
  while (at < message.length) {
    const tag = Number(integer());
    if ((tag & 7) === 0) {
      found[tag >> 3] = integer();
    } else {
      const len = Number(integer());
      found[tag >> 3] = message.subarray(at, (at += len));
    }
  }
  return found;
}

// --- just enough of gRPC ---

const PREFIX = 5; // the flag for compression, and the length

function call(session, path, message) {
  return new Promise((resolve, reject) => {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(message.length, 1);
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const parts = [];
    let status = 'none';
    request.on('data', (part) => parts.push(part));
    request.on('trailers', (trailers) => (status = trailers['grpc-status']));
    request.on('error', reject);
    request.on('end', () => {
      if (status === '0') resolve(fields(Buffer.concat(parts).subarray(PREFIX)));
      else reject(new Error(`${path}: grpc-status ${status}`));
    });
    request.end(Buffer.concat([prefix, message]));
  });
}

export async function open({ etcdPort, clients }) {
  const session = http2.connect(`http://127.0.0.1:${etcdPort}`);
  const leases = [];
  for (let client = 0; client < clients; client++)
    leases.push((await call(session, '/etcdserverpb.Lease/LeaseGrant', integerField(1, LEASE_S)))[2]);
  return {
    async use(resource, client, work) {
      const options = Buffer.concat([bytesField(1, Buffer.from(resource)), integerField(2, leases[client])]);
      const { 2: key } = await call(session, '/v3lockpb.Lock/Lock', options);
      try {
        await work();
      } finally {
        await call(session, '/v3lockpb.Lock/Unlock', bytesField(1, key));
      }
    },
    async close() {
      for (const lease of leases)
        await call(session, '/etcdserverpb.Lease/LeaseRevoke', integerField(1, lease));
      session.close();
    },
  };
}
