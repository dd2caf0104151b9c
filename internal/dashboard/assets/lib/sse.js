// Reads server-sent events from the body of a fetch. EventSource tells neither
// a refused connection from a 401 nor a stream that stands still from one that
// is gone, and both matter here.

// plain takes out of text what makes a browser show it backwards (U+202D and
// U+202E): what stands in a prompt or an output is read in the order it has.
export const plain = (text) => text.replace(/[\u202d\u202e]/g, "\ufffd");

// readEvents calls back with {event, id, data} for each event, data still as
// text, and plain, until the stream ends.
export const readEvents = async (body, call) => {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "", event = newEvent();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) event = take(event, line.endsWith("\r") ? line.slice(0, -1) : line, call);
  }
};

const newEvent = () => ({ event: "message", id: "", data: "" });

const take = (event, line, call) => {
  if (line === "") {
    if (event.data !== "") call({ ...event, data: plain(event.data.slice(0, -1)) });
    return newEvent();
  }
  const at = line.indexOf(":");
  const field = at < 0 ? line : line.slice(0, at);
  const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
  if (field === "data") event.data += value + "\n";
  else if (field === "event" || field === "id") event[field] = value;
  return event;
};
