// Push, pop and ack as the SDKs do them: pooled connections, bodies that are sent again, answers
// whose shape a client depends on.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Broker, LossyLink } from './broker.mjs';
import { BrokerError, Queen, uuid7 } from './client.mjs';

const limit = { timeout: 60_000 };
let broker, link, queen, lossy;

before(async () => {
  broker = await Broker.start();
  link = await LossyLink.to(broker.url);
  queen = new Queen({ urls: [broker.url] });
  lossy = new Queen({ urls: [link.url] });
}, limit);

after(async () => {
  await queen?.close();
  await lossy?.close();
  link?.close();
  await broker?.stop();
}, limit);

test('a pooled connection stays in step over empty and full answers', limit, async () => {
  const counted = await LossyLink.to(broker.url);
  const client = new Queen({ urls: [counted.url], connections: 1 });
  const queue = client.queue('sdk.in-step');
  for (let round = 0; round < 200; ++round) {
    assert.equal(await queue.take(), null);
    await queue.push({ round });
    const [message] = await queue.pop({ autoAck: true });
    assert.deepEqual(message.data, { round });
  }
  assert.equal(counted.connections, 1);
  await client.close();
  counted.close();
});

test('a push answers with an array in the order of its items', limit, async () => {
  const queue = queen.queue('sdk.push').partition('lane');
  const id = uuid7();
  const answer = await queue.push([{ n: 1 }, null, 'three'], [id, undefined, undefined]);
  assert.deepEqual(answer.map((item) => [item.index, item.queueName, item.status]), [0, 1, 2].map((i) => [i, 'sdk.push', 'queued']));
  assert.equal(answer[0].transaction_id, id);
  assert.match(answer[0].message_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  const again = await queue.push([{ n: 1 }], [id]);
  assert.equal(again[0].status, 'duplicate');
  assert.equal(again[0].message_id, answer[0].message_id);
});

test('a popped message has what every SDK reads', limit, async () => {
  const queue = queen.queue('sdk.shape').partition('p').group('g');
  await queue.push({ big: 1 });
  const answer = await queue.take({ batch: 1, partitions: 1 });
  assert.equal(answer.success, true);
  assert.equal(answer.messages.length, 1);
  const [message] = answer.messages;
  assert.deepEqual(Object.keys(message).sort(), [
    'consumerGroup', 'createdAt', 'data', 'deliveryAttempt', 'id', 'leaseId', 'offset', 'partition', 'partitionId', 'producerSub', 'traceId', 'transactionId',
  ]);
  assert.equal(message.leaseId, answer.leaseId);
  assert.equal(message.consumerGroup, 'g');
  assert.equal(message.deliveryAttempt, 1);
  assert.equal(message.producerSub, null);
});

test('a push whose answer is lost is repeated with the same body and stored once', limit, async () => {
  const queue = lossy.queue('sdk.lost-push').partition('p');
  link.lose(2);
  const answer = await queue.push([1, 2, 3]);
  assert.equal(lossy.http.retries, 2);
  assert.deepEqual(answer.map((item) => item.status), ['duplicate', 'duplicate', 'duplicate']);
  const messages = await queen.queue('sdk.lost-push').partition('p').pop({ batch: 10 });
  assert.deepEqual(messages.map((message) => message.data), [1, 2, 3]);
  assert.deepEqual(answer.map((item) => item.message_id), messages.map((message) => message.id));
});

test('an ack whose answer is lost is repeated and answers noop', limit, async () => {
  const queue = queen.queue('sdk.lost-ack').partition('p').group('g');
  await queue.push([1, 2]);
  const messages = await queue.pop({ batch: 2 });
  link.lose(1);
  const answer = await lossy.ack(messages);
  // The lease ended with the first try; what it completed is completed.
  assert.deepEqual(answer.map((item) => [item.success, item.noop, item.error]), [[true, true, null], [true, true, null]]);
  assert.equal(await queue.take({ batch: 2 }), null);
});

test('a batch of acks answers item by item, in order, whatever became of each', limit, async () => {
  const queue = queen.queue('sdk.acks').group('g');
  for (const lane of ['a', 'b', 'c']) await queen.queue('sdk.acks').partition(lane).push([1, 2]);
  const messages = await queue.pop({ batch: 100, partitions: 3 });
  assert.equal(messages.length, 6);
  const stranger = { ...messages[3], transactionId: 'never-pushed' };
  const answer = await queen.ack([messages[0], stranger, messages[1], messages[2]]);
  assert.deepEqual(answer.map((item) => item.index), [0, 1, 2, 3]);
  assert.deepEqual(answer.map((item) => item.success), [true, false, true, true]);
  assert.match(answer[1].error, /unresolvable/);
  const single = await queen.ack(messages[4]);
  assert.equal(single.success, true);
});

test('an ack of a group without its group fails on the lease', limit, async () => {
  const queue = queen.queue('sdk.no-group').partition('p').group('g');
  await queue.push(1);
  const [message] = await queue.pop({ batch: 1 });
  const answer = await queen.ack({ ...message, consumerGroup: undefined });
  assert.equal(answer.success, false);
  assert.equal((await queen.ack(message)).success, true);
});

test('autopilot is answered with what the broker chose', limit, async () => {
  const queue = queen.queue('sdk.autopilot');
  await queue.push([1, 2, 3]);
  const answer = await queue.take();
  assert.ok(answer.autopilot.batch >= 1);
  assert.ok(answer.autopilot.partitions >= 1);
  const fixed = await queen.queue('sdk.autopilot').group('other').take({ batch: 1, partitions: 1 });
  assert.equal(fixed.autopilot, undefined);
  assert.equal(fixed.messages.length, 1);
});

test('renewing with an empty body gives a minute', limit, async () => {
  const queue = queen.queue('sdk.renew').partition('p').group('g');
  await queue.push([1]);
  const messages = await queue.pop({ batch: 1, leaseSeconds: 5 });
  const [renewed] = await queen.renew(messages);
  assert.equal(renewed.success, true);
  assert.equal(renewed.renewed, 1);
  assert.equal(renewed.newExpiresAt, renewed.expiresAt);
  assert.equal(renewed.newExpiresAt, renewed.lease_expires_at);
  assert.match(renewed.newExpiresAt, /Z$/);
});

test('a client that gives up waiting leaves its place to the next', limit, async () => {
  const queue = queen.queue('sdk.gone').partition('p').group('g');
  assert.equal(await queue.take(), null);
  const impatient = new AbortController();
  const waiting = queue.pop({ wait: true, timeout: 20_000, signal: impatient.signal });
  const waiter = queue.pop({ wait: true, timeout: 20_000 });
  impatient.abort();
  await assert.rejects(waiting);
  await queue.push('for who stayed');
  const [message] = await waiter;
  assert.equal(message.data, 'for who stayed');
  assert.equal(message.deliveryAttempt, 1);
});

test('a refusal names what is wrong and is not repeated', limit, async () => {
  const client = new Queen({ urls: [broker.url] });
  await assert.rejects(client.queue('sdk.refused').send([{ queue: 'sdk.refused' }]), (error) => {
    assert.ok(error instanceof BrokerError);
    assert.equal(error.status, 400);
    assert.match(error.message, /payload/);
    return true;
  });
  await assert.rejects(client.http.request('GET', '/api/v1/no/such/route'), (error) => error.code === 'no_such_route');
  assert.equal(client.http.retries, 0);
  await client.close();
});

test('numbers beyond 2^53, NUL escapes and odd names come back as they went', limit, async () => {
  const queue = queen.queue('sdk odd + ü').partition('a b');
  const body = `{"items":[{"queue":"sdk odd + ü","partition":"a b","payload":{"i":9007199254740993,"z":"\\u0000","e":1e400}}]}`;
  const pushed = await fetch(`${broker.url}/api/v1/push`, { method: 'POST', body });
  assert.equal(pushed.status, 201);
  const popped = await (await fetch(broker.url + queue.path({ batch: '1', autoAck: 'true' }).replaceAll('+', '%2B').replace('?', '?'))).text();
  assert.ok(popped.includes('{"i":9007199254740993,"z":"\\u0000","e":1e400}'), popped);
});

test('a buffer sends when it is full, in time, and at the end', limit, async () => {
  const client = new Queen({ urls: [broker.url] });
  const queue = client.queue('sdk.buffer').partition('p');
  const buffer = queue.buffer({ messageCount: 10, timeMillis: 20 });
  await Promise.all(Array.from({ length: 25 }, (_, i) => buffer.add(i)));
  buffer.add(25);
  await client.close();
  const messages = await queen.queue('sdk.buffer').partition('p').pop({ batch: 100 });
  assert.deepEqual(messages.map((message) => message.data), Array.from({ length: 26 }, (_, i) => i));
});
