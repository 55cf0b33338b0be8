// A client that behaves as the existing SDKs do on the wire: what it sends, how it keeps
// connections, when it repeats a request and with which body, what it takes for an end. It is no
// SDK: it exists so that the broker is tested against those habits.
import { Agent, fetch } from 'undici';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

const kVirtualNodes = 128;
const kQueueMode = '__QUEUE_MODE__';

/** Time-ordered ids, as clients mint them for messages without one. */
export function uuid7(now = Date.now()) {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function fnv1a(text) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash;
}

/** A refusal: `error` and `code` of the body. */
export class BrokerError extends Error {
  constructor(status, body) {
    super(body?.error ?? `status ${status}`);
    this.status = status;
    this.code = body?.code;
    this.body = body;
  }
}

/** The transport: a pool that keeps connections, servers by consistent hash, repeats. */
export class Http {
  constructor({ urls, timeoutMillis = 30_000, retryAttempts = 3, retryDelayMillis = 50, healthRetryAfterMillis = 5_000, headers = {}, connections } = {}) {
    this.urls = urls;
    this.timeoutMillis = timeoutMillis;
    this.retryAttempts = retryAttempts;
    this.retryDelayMillis = retryDelayMillis;
    this.healthRetryAfterMillis = healthRetryAfterMillis;
    this.headers = headers;
    this.unhealthy = new Map(); // url -> when it may be tried again
    this.retries = 0;
    this.agent = new Agent({ keepAliveTimeout: 4_000, keepAliveMaxTimeout: 30_000, connections });
    this.ring = urls
      .flatMap((url) => Array.from({ length: kVirtualNodes }, (_, i) => [fnv1a(`${url}#vnode${i}`), url]))
      .sort((a, b) => a[0] - b[0]);
  }

  close() {
    return this.agent.close();
  }

  /** The servers in the order in which they are tried for this key. */
  servers(key) {
    if (this.urls.length === 1) return this.urls;
    const hash = fnv1a(key ?? '');
    const at = this.ring.findIndex(([point]) => point >= hash);
    const first = this.ring[at < 0 ? 0 : at][1];
    const rest = this.urls.filter((url) => url !== first);
    const now = Date.now();
    const all = [first, ...rest];
    const healthy = all.filter((url) => (this.unhealthy.get(url) ?? 0) <= now);
    return [...healthy, ...all.filter((url) => !healthy.includes(url))];
  }

  async once(url, method, path, body, timeout, signal) {
    const limit = AbortSignal.timeout(timeout);
    const response = await fetch(url + path, {
      method,
      body,
      dispatcher: this.agent,
      signal: signal ? AbortSignal.any?.([signal, limit]) ?? limit : limit,
      headers: { 'Content-Type': 'application/json', ...this.headers },
    });
    if (response.status === 204) return null;
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    let parsed = null;
    try {
      parsed = text === '' ? null : JSON.parse(text);
    } catch {
      if (type.includes('application/json')) throw new Error(`not JSON: ${text.slice(0, 80)}`);
    }
    if (!response.ok) {
      const error = new BrokerError(response.status, parsed);
      error.retryAfter = Number(response.headers.get('retry-after') ?? 0);
      throw error;
    }
    return parsed;
  }

  /** Network errors, time-outs and 5xx are tried again with the same body; 4xx never, 429 in place. */
  async request(method, path, { body, key, timeout = this.timeoutMillis, signal } = {}) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const servers = this.servers(key);
    let last;
    for (let attempt = 0, patience = 0; attempt < Math.max(this.retryAttempts, servers.length); ) {
      const url = servers[attempt % servers.length];
      try {
        const answer = await this.once(url, method, path, text, timeout, signal);
        this.unhealthy.delete(url);
        return answer;
      } catch (error) {
        if (signal?.aborted) throw error;
        if (error.status === 429 && patience < 10) {
          patience += 1;
          await pause(Math.max(error.retryAfter * 1_000, 500));
          continue;
        }
        if (error.status >= 400 && error.status < 500) throw error;
        last = error;
        this.unhealthy.set(url, Date.now() + this.healthRetryAfterMillis);
        attempt += 1;
        this.retries += 1;
        if (servers.length === 1) await pause(this.retryDelayMillis * 2 ** (attempt - 1));
      }
    }
    throw last;
  }
}

export class Queen {
  constructor(options) {
    this.http = new Http(options);
    this.buffers = [];
  }

  queue(name) {
    return new Queue(this, name);
  }

  transaction() {
    return new Transaction(this);
  }

  async ack(messages, status = 'completed', { error = null, group } = {}) {
    const of = (message) => ({
      transactionId: message.transactionId,
      partitionId: message.partitionId,
      status,
      error,
      leaseId: message.leaseId || undefined,
    });
    const groupOf = (message) => {
      const name = group ?? message.consumerGroup;
      return name === kQueueMode ? null : name ?? null;
    };
    if (!Array.isArray(messages)) {
      if (!messages.partitionId) throw new Error('a message without partitionId');
      const answer = await this.http.request('POST', '/api/v1/ack', { body: { ...of(messages), consumerGroup: groupOf(messages) } });
      const one = Array.isArray(answer) ? answer[0] : answer;
      return { ...one, success: one.success !== false && !one.error };
    }
    const answer = await this.http.request('POST', '/api/v1/ack/batch', {
      body: { acknowledgments: messages.map(of), consumerGroup: groupOf(messages[0]) },
    });
    if (!Array.isArray(answer) || answer.length !== messages.length) throw new Error('an answer of another length');
    return answer;
  }

  async renew(messages) {
    const leases = [...new Set(messages.map((message) => message.leaseId))];
    return Promise.all(leases.map((id) => this.http.request('POST', `/api/v1/lease/${id}/extend`, { body: {} })));
  }

  /** Sends what is buffered. */
  async close() {
    for (const buffer of this.buffers) await buffer.flush();
    await this.http.close();
  }
}

class Queue {
  constructor(queen, name) {
    Object.assign(this, { queen, name, options: {}, query: {}, lane: 'Default', groupName: undefined });
  }

  config(options) {
    this.options = options;
    return this;
  }
  namespace(value) {
    this.ns = value;
    return this;
  }
  task(value) {
    this.taskName = value;
    return this;
  }
  partition(name) {
    this.lane = name;
    return this;
  }
  group(name) {
    this.groupName = name;
    return this;
  }
  with(query) {
    Object.assign(this.query, query);
    return this;
  }

  create() {
    const defaults = {
      leaseTime: 300, retryLimit: 3, priority: 0, delayedProcessing: 0, windowBuffer: 0, maxSize: 0,
      retentionSeconds: 0, completedRetentionSeconds: 0, encryptionEnabled: false,
    };
    return this.queen.http.request('POST', '/api/v1/configure', {
      body: { queue: this.name, namespace: this.ns ?? null, task: this.taskName ?? null, options: { ...defaults, ...this.options } },
    });
  }

  delete() {
    return this.queen.http.request('DELETE', `/api/v1/resources/queues/${encodeURIComponent(this.name)}`);
  }

  item(payload, transactionId = uuid7()) {
    return { queue: this.name, partition: this.lane, payload, transactionId };
  }

  async send(items) {
    const answer = await this.queen.http.request('POST', '/api/v1/push', { body: { items } });
    if (!Array.isArray(answer)) throw new Error('the answer to a push is no array');
    const refused = answer.filter((item) => !['queued', 'buffered', 'duplicate'].includes(item.status));
    if (refused.length > 0) throw new Error(refused[0].error ?? 'push failed');
    return answer;
  }

  push(payloads, ids = []) {
    const list = Array.isArray(payloads) ? payloads : [payloads];
    return this.send(list.map((payload, i) => this.item(payload, ids[i])));
  }

  /** Pushes when so many are there or so much time has gone by. */
  buffer({ messageCount = 100, timeMillis = 1_000 } = {}) {
    const queue = this;
    const buffer = {
      items: [],
      sent: Promise.resolve(),
      add(payload, id) {
        buffer.items.push(queue.item(payload, id));
        if (buffer.items.length >= messageCount) return buffer.flush();
        buffer.timer ??= setTimeout(() => buffer.flush(), timeMillis);
        return buffer.sent;
      },
      flush() {
        clearTimeout(buffer.timer);
        buffer.timer = undefined;
        const items = buffer.items.splice(0);
        if (items.length > 0) buffer.sent = buffer.sent.then(() => queue.send(items));
        return buffer.sent;
      },
    };
    this.queen.buffers.push(buffer);
    return buffer;
  }

  /** Queue and partition go into the path as they are, as the SDKs do it. */
  path(query) {
    const lane = this.lane === 'Default' ? '' : `/partition/${this.lane}`;
    return `/api/v1/pop/queue/${this.name}${lane}?${new URLSearchParams(query)}`;
  }

  async take({ signal, ...query } = {}) {
    const all = { ...this.query, ...query };
    if (this.groupName) all.consumerGroup = this.groupName;
    if (all.batch === undefined || all.partitions === undefined) all.autopilot ??= true;
    const wait = all.wait ? Number(all.timeout ?? 30_000) : 0;
    return this.queen.http.request('GET', this.path(all), {
      key: `${this.name}:${this.lane === 'Default' ? '*' : this.lane}:${this.groupName ?? kQueueMode}`,
      timeout: wait + 5_000,
      signal,
    });
  }

  async pop(query) {
    return (await this.take(query))?.messages ?? [];
  }

  /**
   * The consume loop. `handler` gets one message with `each`, else the batch. Ends with `signal`,
   * with an error that is no time-out, or when `until` says so.
   */
  async consume(handler, { signal, each = false, timeout = 30_000, until = () => false, renewEach, query = {} } = {}) {
    while (!signal?.aborted && !until()) {
      let messages;
      try {
        messages = await this.pop({ wait: true, timeout, signal, ...query });
      } catch (error) {
        if (signal?.aborted) return;
        if (error.name === 'TimeoutError') continue;
        throw error;
      }
      if (messages.length === 0) continue;
      const renewing = renewEach && setInterval(() => this.queen.renew(messages).catch(() => {}), renewEach);
      try {
        await (each ? this.handleEach(messages, handler) : this.handleBatch(messages, handler));
      } finally {
        clearInterval(renewing);
      }
    }
  }

  async handleEach(messages, handler) {
    for (const message of messages) {
      try {
        await handler(message);
      } catch (error) {
        await this.queen.ack(message, 'failed', { error: error.message });
        return; // the broker redelivers the rest
      }
      await this.queen.ack(message);
    }
  }

  async handleBatch(messages, handler) {
    try {
      await handler(messages);
    } catch (error) {
      await this.queen.ack(messages, 'failed', { error: error.message });
      return;
    }
    await this.queen.ack(messages);
  }

  dlq(query = {}) {
    return this.queen.http.request('GET', `/api/v1/dlq?${new URLSearchParams({ queue: this.name, ...query })}`);
  }
}

class Transaction {
  constructor(queen) {
    Object.assign(this, { queen, operations: [], leases: new Set() });
  }
  ack(message, status = 'completed') {
    this.leases.add(message.leaseId);
    this.operations.push({
      type: 'ack', transactionId: message.transactionId, partitionId: message.partitionId, status,
      consumerGroup: message.consumerGroup === kQueueMode ? undefined : message.consumerGroup,
    });
    return this;
  }
  push(queue, payloads) {
    this.operations.push({ type: 'push', items: payloads.map((payload) => queue.item(payload)) });
    return this;
  }
  async commit() {
    const answer = await this.queen.http.request('POST', '/api/v1/transaction', {
      body: { operations: this.operations, requiredLeases: [...this.leases] },
    });
    if (answer.success === false) {
      const error = new Error(answer.error);
      error.reason = answer.reason;
      throw error;
    }
    return answer;
  }
}
