// The consume loop: order, nacks, dead letters, renewal, conflation, many consumers.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Broker } from './broker.mjs';
import { Queen } from './client.mjs';

const limit = { timeout: 90_000 };
let broker, queen;

before(async () => {
  broker = await Broker.start();
  queen = new Queen({ urls: [broker.url] });
}, limit);

after(async () => {
  await queen?.close();
  await broker?.stop();
}, limit);

/** Consumes with `count` loops until `enough` is true after some message. */
async function consumeUntil(make, count, enough, handler, options = {}) {
  const stop = new AbortController();
  await Promise.all(
    Array.from({ length: count }, () =>
      make().consume(async (value) => {
        try {
          await handler(value);
        } finally {
          if (enough()) setImmediate(() => stop.abort());
        }
      }, { signal: stop.signal, until: enough, timeout: 2_000, ...options }),
    ),
  );
}

test('each message of each lane is handled once and in order by several consumers', limit, async () => {
  const lanes = Array.from({ length: 8 }, (_, i) => `lane-${i}`);
  const queue = queen.queue('sdk.order');
  await Promise.all(
    lanes.map(async (lane) => {
      for (let from = 0; from < 100; from += 10) {
        await queen.queue('sdk.order').partition(lane).push(Array.from({ length: 10 }, (_, i) => from + i));
      }
    }),
  );
  const seen = new Map(lanes.map((lane) => [lane, []]));
  let handled = 0;
  await consumeUntil(() => queen.queue('sdk.order').group('workers'), 4, () => handled >= 800, (messages) => {
    for (const message of messages) {
      seen.get(message.partition).push(message.data);
      handled += 1;
    }
  });
  for (const lane of lanes) assert.deepEqual(seen.get(lane), Array.from({ length: 100 }, (_, i) => i), lane);
  assert.equal(await queue.group('workers').take({ batch: 1 }), null);
});

test('K17: one poisonous message is dead-lettered alone, its neighbours are handled once', limit, async () => {
  await queen.queue('sdk.poison').config({ retryLimit: 3 }).create();
  await queen.queue('sdk.poison').partition('p').push(Array.from({ length: 10 }, (_, i) => i + 1));
  const good = [];
  let attempts = 0;
  await consumeUntil(() => queen.queue('sdk.poison').group('g'), 1, () => good.length >= 9, (message) => {
    if (message.data === 5) {
      attempts += 1;
      throw new Error('cannot digest 5');
    }
    good.push(message.data);
  }, { each: true });
  assert.deepEqual(good, [1, 2, 3, 4, 6, 7, 8, 9, 10]);
  assert.equal(attempts, 4); // three failures redeliver, the fourth dead-letters
  const letters = await queen.queue('sdk.poison').dlq({ consumerGroup: 'g' });
  assert.equal(letters.total, 1);
  assert.equal(letters.messages[0].data, 5);
  assert.equal(letters.messages[0].errorMessage, 'cannot digest 5');
});

test('a dead letter is replayed once however often one asks', limit, async () => {
  await queen.queue('sdk.replay').config({ retryLimit: 0 }).create();
  await queen.queue('sdk.replay').partition('p').push('again');
  const [message] = await queen.queue('sdk.replay').group('g').pop({ batch: 1 });
  const nack = await queen.ack(message, 'failed', { error: 'once' });
  assert.equal(nack.dlq, true);
  const [letter] = (await queen.queue('sdk.replay').dlq()).messages;
  const asked = await Promise.allSettled(Array.from({ length: 5 }, () => queen.http.request('POST', `/api/v1/dlq/${letter.id}/replay`, { body: {} })));
  const moved = asked.filter((one) => one.status === 'fulfilled' && one.value.result === 'moved');
  assert.equal(moved.length, 1);
  for (const one of asked) assert.ok(one.status === 'fulfilled' || one.reason.status === 404, String(one.reason));
  const again = await queen.queue('sdk.replay').group('g').pop({ batch: 10 });
  assert.deepEqual(again.map((one) => [one.data, one.transactionId]), [['again', `dlq:${letter.id}`]]);
});

test('failing a whole batch brings the whole batch back', limit, async () => {
  await queen.queue('sdk.batch-nack').partition('p').push([1, 2, 3]);
  const batches = [];
  await consumeUntil(() => queen.queue('sdk.batch-nack').group('g'), 1, () => batches.length >= 2, (messages) => {
    batches.push(messages.map((message) => [message.data, message.deliveryAttempt]));
    if (batches.length === 1) throw new Error('not yet');
  });
  assert.deepEqual(batches, [[[1, 1], [2, 1], [3, 1]], [[1, 2], [2, 2], [3, 2]]]);
});

test('a lease that is renewed outlives its time', limit, async () => {
  const queue = queen.queue('sdk.renewed').partition('p').group('g');
  await queue.push(1);
  let others;
  let done = false;
  await consumeUntil(() => queen.queue('sdk.renewed').group('g'), 1, () => done, async () => {
    // Longer than the lease of a second; another consumer asks all the while.
    others = await queen.queue('sdk.renewed').group('g').take({ batch: 1, wait: true, timeout: 2_500 });
    done = true;
  }, { renewEach: 200, query: { leaseSeconds: 1 } });
  assert.equal(others, null);
  assert.equal(await queue.take({ batch: 1 }), null);
});

test('a conflating consumer gets the newest of each lane and completes the rest', limit, async () => {
  const queue = () => queen.queue('sdk.conflate').group('view').with({ conflation: true });
  const first = await queue().take({ batch: 10 });
  assert.equal(first.conflation, true); // an empty answer has a body, or clients take it for an old broker
  assert.deepEqual(first.messages, []);
  for (const lane of ['a', 'b']) {
    for (const n of [1, 2, 3]) await queen.queue('sdk.conflate').partition(lane).push(`${lane}${n}`);
  }
  const messages = await queue().pop({ batch: 10 });
  assert.deepEqual(messages.map((message) => message.data).sort(), ['a3', 'b3']);
  const answer = await queen.ack(messages);
  assert.deepEqual(answer.map((item) => [item.success, item.conflated]), [[true, 2], [true, 2]]);
  assert.deepEqual(await queue().pop({ batch: 10 }), []);
});

test('a transaction settles and pushes together or not at all', limit, async () => {
  const input = queen.queue('sdk.tx.in').partition('p').group('g');
  const output = queen.queue('sdk.tx.out').partition('p');
  await input.push(['one', 'two']);
  const messages = await input.pop({ batch: 2 });
  const transaction = queen.transaction();
  for (const message of messages) transaction.ack(message);
  const answer = await transaction.push(output, ['ONE', 'TWO']).commit();
  assert.deepEqual(answer.results.map((result) => [result.index, result.type, result.success]), [[0, 'ack', true], [1, 'ack', true], [2, 'push', true], [3, 'push', true]]);
  assert.equal(await input.take({ batch: 1 }), null);
  assert.deepEqual((await output.pop({ batch: 10, autoAck: true })).map((message) => message.data), ['ONE', 'TWO']);
  // The lease is gone: nothing of the second one happens.
  const late = queen.transaction().ack(messages[0]).push(output, ['never']);
  await assert.rejects(late.commit(), (error) => ['rejected_ack', 'ack_rejected'].includes(error.reason));
  assert.equal(await output.take({ batch: 1 }), null);
});

test('two groups read everything, each at its own pace', limit, async () => {
  await queen.queue('sdk.groups').partition('p').push([1, 2, 3]);
  const fast = await queen.queue('sdk.groups').group('fast').pop({ batch: 3 });
  const slow = await queen.queue('sdk.groups').group('slow').pop({ batch: 1 });
  assert.deepEqual([fast.length, slow.length], [3, 1]);
  await queen.ack(fast);
  await queen.ack(slow);
  const rest = await queen.queue('sdk.groups').group('slow').pop({ batch: 10 });
  assert.deepEqual(rest.map((message) => message.data), [2, 3]);
});
