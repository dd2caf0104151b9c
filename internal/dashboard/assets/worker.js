// The worker that all tabs of a browser share. It holds one live stream: HTTP/1.1
// allows six connections per host, so with a stream for each tab the seventh would
// hang.
import { openFeed } from "./lib/feed.js";
import { loginKey, useLoginKey } from "./lib/login.js";

const ports = new Set();
let feed = null;

const tellAll = (message) => {
  for (const port of ports) port.postMessage(message);
};

// join sends a tab the present state; then it gets the same messages as the others. A
// tab that joins after a logout has logged in, so it must not get the old state.
const join = (port, key) => {
  ports.add(port);
  const another = key !== loginKey();
  useLoginKey(key);
  if (feed && (another || ["login", "denied"].includes(feed.state.state))) {
    feed.close();
    feed = null;
  }
  feed ??= openFeed(tellAll);
  port.postMessage({ type: "board", board: feed.board });
  port.postMessage(feed.state);
};

// leave ends the stream when no tab is left.
const leave = (port) => {
  ports.delete(port);
  if (ports.size > 0 || !feed) return;
  feed.close();
  feed = null;
};

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => (data === "leave" ? leave(port) : join(port, data.key));
  port.start();
};
