// Brokers for the tests: the built queend on an embedded database of its own, and others that use
// the same database. Everything is stopped by process id when the tests end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const program = process.env.QUEEND;
const running = new Set();
process.on('exit', () => {
  for (const broker of running) broker.process.kill('SIGTERM');
});

export class Broker {
  /** `beside`: another broker whose embedded database this one uses. */
  static async start({ config = '', beside } = {}) {
    const broker = new Broker();
    broker.folder = mkdtempSync(join(tmpdir(), 'queen-sdk-'));
    chmodSync(broker.folder, 0o755); // a database of root's broker runs as another user
    broker.data = join(broker.folder, 'data');
    const database = beside ? `database: {url: "host=${beside.data}/run dbname=queen user=queen"}\n` : '';
    broker.file = join(broker.folder, 'queen.yaml');
    writeFileSync(broker.file, `listen: 127.0.0.1:0\n${database}${config}`);
    await broker.run();
    return broker;
  }

  async run(port = 0) {
    this.process = spawn(program, ['--config', this.file, '--data', this.data, '--port', port], { stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(this);
    this.ended = once(this.process, 'exit').then(([code]) => {
      running.delete(this);
      return code;
    });
    this.output = '';
    this.url = await new Promise((resolve, reject) => {
      const read = (chunk) => {
        this.output += chunk;
        const ready = /ready on (http:\/\/[0-9.:]+)/.exec(this.output);
        if (ready) resolve(ready[1]);
      };
      this.process.stdout.setEncoding('utf8').on('data', read);
      this.process.stderr.setEncoding('utf8').on('data', read);
      this.process.on('error', reject);
      this.process.on('close', () => reject(new Error(`queend ended:\n${this.output}`)));
    });
  }

  /** Stops it as an operator does, and starts it again at the same address. */
  async restart() {
    this.process.kill('SIGTERM');
    const code = await this.ended;
    if (code !== 0) throw new Error(`queend ended with ${code}:\n${this.output}`);
    await this.run(new URL(this.url).port);
  }

  /** What a series of its metrics is; 0 when there is none. */
  async metric(series) {
    const page = await (await fetch(`${this.url}/metrics/prometheus`)).text();
    const line = page.split('\n').find((each) => each.startsWith(`${series} `));
    return line ? Number(line.slice(series.length)) : 0;
  }
  /** Asks until a series is at least that; the test's time is the limit. */
  async reaches(series, least) {
    while ((await this.metric(series)) < least);
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  async stop() {
    this.process.kill('SIGTERM');
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Ports that nobody uses; somebody may take them before you do. */
export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => server.address().port);
  for (const server of servers) server.close();
  await Promise.all(servers.map((server) => once(server, 'close')));
  return ports;
}

/**
 * A link to a broker that loses answers: `lose(n)` forwards the next n requests and cuts the
 * connection instead of passing the answer on.
 */
export class LossyLink {
  static async to(url) {
    const link = new LossyLink();
    const { hostname, port } = new URL(url);
    link.left = 0;
    link.lost = 0;
    link.connections = 0;
    link.server = createServer((client) => {
      link.connections += 1;
      const broker = connect(port, hostname);
      const end = () => {
        client.destroy();
        broker.destroy();
      };
      for (const socket of [client, broker]) socket.on('error', end).on('close', end);
      client.on('data', (chunk) => broker.write(chunk));
      broker.on('data', (chunk) => {
        if (link.left > 0) {
          link.left -= 1;
          link.lost += 1;
          end();
        } else {
          client.write(chunk);
        }
      });
    });
    link.server.listen(0, '127.0.0.1');
    await once(link.server, 'listening');
    link.url = `http://127.0.0.1:${link.server.address().port}`;
    return link;
  }
  lose(answers) {
    this.left = answers;
  }
  close() {
    this.server.close();
  }
}
