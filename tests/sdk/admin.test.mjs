// What the administrative calls of the SDKs send and read.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Broker } from './broker.mjs';
import { Queen } from './client.mjs';

const limit = { timeout: 60_000 };
let broker, queen;
const get = (path) => queen.http.request('GET', path);
const post = (path, body) => queen.http.request('POST', path, { body });
const remove = (path) => queen.http.request('DELETE', path);

before(async () => {
  broker = await Broker.start();
  queen = new Queen({ urls: [broker.url] });
}, limit);

after(async () => {
  await queen?.close();
  await broker?.stop();
}, limit);

test('create echoes the options; delete is idempotent; create again begins anew', limit, async () => {
  const queue = queen.queue('sdk.life').namespace('sdk').task('life').config({ leaseTime: 7, retryLimit: 1 });
  const created = await queue.create();
  assert.equal(created.configured, true);
  assert.equal(created.options.leaseTime, 7);
  assert.equal(created.options.retryLimit, 1);
  assert.equal(created.options.deadLetterQueue, true);
  const id = 'the-same-id';
  await queue.push(1, [id]);
  assert.equal((await queue.delete()).deleted, true);
  const gone = await queue.delete();
  assert.equal(gone.deleted, false);
  assert.equal(gone.existed, false);
  await queue.create();
  const [again] = await queue.push(2, [id]); // an id of the old queue blocks nothing (K47)
  assert.equal(again.status, 'queued');
  assert.equal(again.offset, 0);
});

test('the resources answer what dashboards read', limit, async () => {
  await queen.queue('sdk.res').namespace('n').task('t').create();
  await queen.queue('sdk.res').partition('p').push([1, 2, 3]);
  const [message] = await queen.queue('sdk.res').group('g').pop({ batch: 1 });
  await queen.ack(message);
  const detail = await get('/api/v1/resources/queues/sdk.res');
  assert.equal(detail.partitions.length, 1);
  assert.equal(detail.totals.total, 3);
  assert.equal(detail.totals.pending, 2);
  const depth = await get('/api/v1/resources/queues/sdk.res/depth?group=g');
  assert.equal(depth.pending, 2);
  const { queues } = await get('/api/v1/resources/queues');
  assert.ok(queues.some((queue) => queue.name === 'sdk.res' && queue.messages.total === 3));
  const overview = await get('/api/v1/resources/overview');
  assert.ok(overview.queues >= 1);
  assert.ok((await get('/api/v1/resources/namespaces')).namespaces.some((row) => row.namespace === 'n'));
  assert.ok((await get('/api/v1/resources/tasks')).tasks.some((row) => row.task === 't'));
});

test('groups are listed, sought and deleted', limit, async () => {
  const queue = queen.queue('sdk.seek').partition('p').group('reader');
  await queue.push([1, 2, 3]);
  await queen.queue('sdk.seek').group('reader').pop({ batch: 1, autoAck: true }); // the first contact by queue registers
  await queen.ack(await queue.pop({ batch: 10 }));
  const groups = await get('/api/v1/consumer-groups');
  const group = groups.find((one) => one.name === 'reader' && one.queueName === 'sdk.seek');
  assert.equal(group.totalLag, 0);
  assert.deepEqual(group.topics, ['sdk.seek']);
  const sought = await post('/api/v1/consumer-groups/reader/queues/sdk.seek/seek', { timestamp: '2020-01-01T00:00:00Z' });
  assert.equal(sought.success, true);
  assert.equal(sought.partitionsUpdated, 1);
  assert.deepEqual((await queue.pop({ batch: 10, autoAck: true })).map((message) => message.data), [1, 2, 3]);
  await post('/api/v1/consumer-groups/reader/queues/sdk.seek/seek', { timestamp: '2020-01-01T00:00:00Z' });
  await post('/api/v1/consumer-groups/reader/queues/sdk.seek/seek', { toEnd: true });
  assert.equal(await queue.take({ batch: 10 }), null);
  const detail = await get('/api/v1/consumer-groups/reader');
  assert.equal(detail['sdk.seek'].partitions[0].offsetLag, 0);
  assert.ok(Array.isArray(await get('/api/v1/consumer-groups/lagging?minLagSeconds=60')));
  assert.equal((await remove('/api/v1/consumer-groups/reader/queues/sdk.seek?deleteMetadata=true')).success, true);
  assert.deepEqual((await queue.pop({ batch: 10, autoAck: true })).map((message) => message.data), [1, 2, 3]);
});

test('messages are browsed, and one is found by its address', limit, async () => {
  await queen.queue('sdk.browse').partition('p').push(['x', 'y'], ['tx-x', 'tx-y']);
  const page = await get('/api/v1/messages?queue=sdk.browse');
  assert.deepEqual(page.messages.map((message) => [message.transactionId, message.data, message.status]), [['tx-y', 'y', 'pending'], ['tx-x', 'x', 'pending']]);
  const { partitionId } = page.messages[0];
  const one = await get(`/api/v1/messages/${partitionId}/tx-x`);
  assert.equal(one.data, 'x');
  await assert.rejects(get(`/api/v1/messages/${partitionId}/tx-z`), (error) => error.status === 404);
});

test('maintenance of pops holds deliveries back and lets them go again', limit, async () => {
  await queen.queue('sdk.hold').push(1);
  const on = await post('/api/v1/system/maintenance/pop', { enabled: true });
  assert.equal(on.popMaintenanceMode, true);
  assert.equal(await queen.queue('sdk.hold').take({ batch: 1, partitions: 1 }), null);
  await post('/api/v1/system/maintenance/pop', { enabled: false });
  assert.equal((await queen.queue('sdk.hold').pop({ batch: 1 })).length, 1);
  const state = await get('/api/v1/system/shared-state');
  assert.equal(state.pop_maintenance_mode, false);
});

test('health, status and the small routes of dashboards', limit, async () => {
  assert.equal((await get('/health')).status, 'healthy');
  assert.equal((await get('/status')).status, 'ok');
  assert.equal((await get('/auth/me')).role, 'admin');
  assert.equal(typeof (await post('/api/v1/stats/refresh', {})), 'object');
});
