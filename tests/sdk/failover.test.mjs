// Several servers: a client goes on at another one when one dies, and nothing is lost.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Broker } from './broker.mjs';
import { Queen } from './client.mjs';

const limit = { timeout: 90_000 };
let first, second, queen;

before(async () => {
  first = await Broker.start();
  second = await Broker.start({ beside: first });
  queen = new Queen({ urls: [first.url, second.url] });
}, limit);

after(async () => {
  await queen?.close();
  await second?.stop();
  await first?.stop();
}, limit);

test('a broker dies while clients push and consume: every id is delivered', limit, async () => {
  // A queue whose consumers are sent to the broker that will die.
  let name = 'sdk.failover';
  while (queen.http.servers(`${name}:*:g`)[0] !== second.url) name += '.x';
  const pushed = new Set();
  const seen = new Set();
  const stop = new AbortController();
  const enough = () => pushed.size === 400 && seen.size >= 400;
  const consumers = Array.from({ length: 4 }, () =>
    queen.queue(name).group('g').consume(
      (messages) => {
        for (const message of messages) seen.add(message.transactionId);
        if (enough()) setImmediate(() => stop.abort());
      },
      { signal: stop.signal, until: enough, timeout: 1_000, query: { leaseSeconds: 2 } },
    ),
  );
  for (let round = 0; round < 40; ++round) {
    if (round === 20) await second.kill();
    const answer = await queen.queue(name).partition(`p${round % 8}`).push(Array.from({ length: 10 }, (_, i) => round * 10 + i));
    for (const item of answer) pushed.add(item.transaction_id);
  }
  await Promise.all(consumers);
  assert.deepEqual([...seen].sort(), [...pushed].sort());
  assert.ok(queen.http.retries > 0, 'nobody met the dead broker');
});
