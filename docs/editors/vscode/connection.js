// JSON-RPC over the stdin and stdout of a process, as language servers speak it. It knows nothing of the editor.

"use strict";

const { spawn } = require("child_process");

class Connection {
  // `handlers`: what to do with the notifications of the server, by method. `ended`: called with a reason at its end.
  constructor(command, options, handlers, ended) {
    this.number = 0;
    this.waiting = new Map();
    this.handlers = handlers;
    this.received = Buffer.alloc(0);
    this.ended = ended;
    this.said = "";
    this.process = spawn(command[0], command.slice(1), options);
    this.process.stdout.on("data", (data) => this.receive(data));
    this.process.stderr.on("data", (data) => (this.said = (this.said + data).slice(-2000)));
    this.process.stdin.on("error", () => {});
    this.process.on("error", (error) => this.end(error.message));
    this.process.on("exit", (code) => this.end(this.said.trim() || `exit code ${code}`));
  }

  end(reason) {
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
    const ended = this.ended;
    this.ended = () => {};
    ended(reason);
  }

  send(message) {
    const content = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${content.length}\r\n\r\n`);
    this.process.stdin.write(content);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  receive(data) {
    this.received = Buffer.concat([this.received, data]);
    for (;;) {
      const header = this.received.indexOf("\r\n\r\n");
      if (header < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.received.toString("ascii", 0, header))[1]);
      const end = header + 4 + length;
      if (this.received.length < end) return;
      const message = JSON.parse(this.received.toString("utf8", header + 4, end));
      this.received = this.received.subarray(end);
      this.dispatch(message);
    }
  }

  dispatch(message) {
    if (message.method === undefined) {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (waiting === undefined) return;
      if (message.error) waiting.reject(new Error(message.error.message));
      else waiting.resolve(message.result);
    } else if (message.id !== undefined) {
      this.send({ id: message.id, error: { code: -32601, message: "not supported by this client" } });
    } else if (this.handlers[message.method]) {
      this.handlers[message.method](message.params);
    }
  }

  async stop() {
    this.ended = () => {};
    await this.request("shutdown").catch(() => {});
    this.notify("exit");
  }
}

module.exports = { Connection };
