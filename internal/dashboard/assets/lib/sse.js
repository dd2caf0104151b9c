// Reads server-sent events from the body of a fetch. EventSource cannot distinguish
// a refused connection from a 401, or a silent stream from a broken one.

// plain replaces the characters that make a browser show text backwards (U+202D and
// U+202E), so that prompts and output are shown in their order.
export const plain = (text) => text.replace(/[\u202d\u202e]/g, "\ufffd");

// readEvents calls back with {event, id, data} for each event until the stream ends.
// data is plain text.
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
