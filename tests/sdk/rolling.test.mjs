// A rolling restart: each of two brokers is stopped and started again, twice, while clients push
// and consume. No call fails after its repeats, nothing is lost, and nothing is settled twice. All
// three hint each other, over TCP and through the database, so that links end and begin under load.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Broker, freePorts } from './broker.mjs';
import { Queen } from './client.mjs';

const limit = { timeout: 120_000 };
let database, queen;
const brokers = [];

function config(number, ports) {
  const peers = ports.filter((_, i) => i !== number).map((port) => `127.0.0.1:${port}`);
  return `server_id: r${number}
plugins:
  - {name: hotlist, path: hotlist.so}
  - {name: sqlscan, path: sqlscan.so}
  - {name: mesh, path: mesh.so, options: {port: ${ports[number]}, peers: "${peers}", heartbeat: 100ms}}
  - {name: meshpg, path: meshpg.so, options: {heartbeat: 500ms}}
`;
}

async function linked() {
  for (const broker of [database, ...brokers]) {
    await broker.reaches('queen_mesh_peers_connected{plugin="mesh"}', 2);
    await broker.reaches('queen_mesh_connected{plugin="meshpg"}', 1);
  }
}

before(async () => {
  const ports = await freePorts(3);
  // It has the database; the others come and go beside it.
  database = await Broker.start({ config: config(0, ports) });
  brokers.push(...(await Promise.all([1, 2].map((number) => Broker.start({ config: config(number, ports), beside: database })))));
  await linked();
  queen = new Queen({ urls: brokers.map((broker) => broker.url) });
}, limit);

after(async () => {
  await queen?.close();
  for (const broker of brokers) await broker.stop();
  await database?.stop();
}, limit);

test('a rolling restart under load loses nothing and fails no call', limit, async () => {
  const name = 'sdk.rolling';
  const pushed = new Set();
  const settled = new Map(); // how often an ack of it was answered with success, by id
  const unsure = new Set(); // settled already, or another's by now: the answer before was lost
  let restarts = 0;
  let pushing = true;
  const moved = new EventEmitter();
  const progress = () => pushed.size + settled.size;
  const finished = () => !pushing && [...pushed].every((id) => unsure.has(id) || settled.has(id));

  const pusher = async (number) => {
    for (let round = 0; restarts < 4; ++round) {
      const queue = queen.queue(name).partition(`p${number}-${round % 4}`);
      for (const item of await queue.push(Array.from({ length: 5 }, (_, i) => i))) {
        pushed.add(item.transaction_id);
      }
      moved.emit('on');
    }
  };
  const consumer = async () => {
    while (!finished()) {
      const messages = await queen.queue(name).group('g').pop({ wait: true, timeout: 500, batch: 50, partitions: 4, leaseSeconds: 5 });
      if (messages.length === 0) continue;
      const answer = await queen.ack(messages);
      answer.forEach((item, i) => {
        const id = messages[i].transactionId;
        if (item.success) settled.set(id, (settled.get(id) ?? 0) + 1);
        else unsure.add(id);
      });
      moved.emit('on');
    }
  };
  const pushers = Promise.all([0, 1].map(pusher));
  const consumers = Promise.all(Array.from({ length: 4 }, consumer));
  const work = Promise.all([pushers, consumers]);
  work.catch(() => {}); // awaited below

  for (let round = 0; round < 2; ++round) {
    for (const broker of brokers) {
      // Load first, so that each restart meets requests under way.
      for (const target = progress() + 100; progress() < target; ) await Promise.race([work, once(moved, 'on')]);
      await broker.restart();
      restarts += 1;
    }
  }
  await pushers;
  pushing = false;
  await work;
  assert.deepEqual([...settled].filter(([, times]) => times > 1), [], 'settled twice');
  if ([...unsure].some((id) => !settled.has(id))) {
    // Only an ack whose answer was lost may have done it: then nobody is offered the message again.
    assert.deepEqual(await queen.queue(name).group('g').pop({ wait: true, timeout: 8_000, batch: 50, partitions: 8 }), []);
  }
  const ends = new Set([...settled.keys(), ...unsure]);
  assert.deepEqual([...ends].sort(), [...pushed].sort());
  assert.ok(queen.http.retries > 0, 'nobody met a broker that was away');
  // Every link was up before the first restart, so each peer was lost and found again at least once.
  await linked();
  await database.reaches('queen_mesh_reconnects_total{plugin="mesh"}', 2);
  for (const plugin of ['mesh', 'meshpg']) {
    assert.ok((await database.metric(`queen_mesh_hints_received_total{plugin="${plugin}"}`)) > 0, plugin);
  }
});
