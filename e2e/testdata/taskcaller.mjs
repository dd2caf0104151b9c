// A client of tasks, made with the official TypeScript libraries: the client of
// the protocol and the tasks extension. It prints what it hears. Arguments: the
// folder node_modules, the URL of the MCP endpoint, a token or "", then what it is
// to do, one after the other, with a comma between them:
//
//	call TOOL ARGUMENTS    calls the tool and waits for what it comes to
//	cancel TOOL ARGUMENTS  calls it and cancels the task once it has one
//	leave TOOL ARGUMENTS   calls it and goes, once it has a task
//	get ID, stop ID        asks for a task, or cancels it, by its id
//	follow ID              asks for a task until it has ended
const [modules, url, token, ...line] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(`${modules}/@modelcontextprotocol/client/dist/index.mjs`);
const { createTaskSessionFromClient } = await import(`${modules}/@modelcontextprotocol/ext-tasks/dist/client/index.js`);

const version = "2026-07-28";
const auth = token ? { Authorization: `Bearer ${token}` } : {};
const clientInfo = { name: "e2e", version: "1" };
const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: version } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: auth } }));

// The library's own requests know no tasks: these go out as they are.
let ids = 0;
async function rawDispatch(request, { signal } = {}) {
  const response = await fetch(url, {
    method: "POST",
    signal,
    headers: {
      ...auth,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version,
      "Mcp-Method": request.method,
      "Mcp-Name": request.params.name ?? request.params.taskId,
    },
    body: JSON.stringify({ ...request, jsonrpc: "2.0", id: ++ids }),
  });
  const text = await response.text();
  const messages = response.headers.get("content-type").startsWith("text/event-stream")
    ? text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []))
    : [JSON.parse(text)];
  const { result, error } = messages.find((m) => m.id === ids);
  return error ? { kind: "error", error } : { kind: "result", result };
}

const session = createTaskSessionFromClient(client, {
  endpointId: "e2e",
  rawDispatch,
  v2RequestFraming: { protocolVersion: version, clientInfo, clientCapabilities: {} },
});
const told = (task) => `${task.status} ${task.statusMessage ?? ""}`.trim();

async function run(mode, what, json) {
  if (mode === "get") {
    console.log(`task ${told(await session.task(what).snapshot())}`);
  } else if (mode === "follow") {
    let task;
    while ((task = await session.task(what).snapshot()).status === "working") await new Promise((next) => setTimeout(next, 50));
    console.log(`task ${told(task)}`);
  } else if (mode === "stop") {
    await session.task(what).cancel();
    console.log("asked to stop");
  } else {
    const execution = await session.callTool(what, JSON.parse(json));
    console.log(`kind ${execution.kind}`);
    if (execution.kind === "task") console.log(`id ${execution.handle.taskId}`);
    if (mode === "leave") {
      await execution.detach();
    } else {
      if (mode === "cancel") await execution.cancel();
      let last = "";
      const { outcome } = await execution.settle({
        onEvent: ({ task }) => {
          if (task && told(task) !== last) console.log(`is ${(last = told(task))}`);
        },
      });
      if (outcome.status === "completed") console.log(`completed ${outcome.result.isError ? "error" : "ok"} ${outcome.result.content[0].text}`);
      else if (outcome.status === "failed") console.log(`failed ${outcome.error.code} ${outcome.error.message}`);
      else console.log("cancelled");
    }
  }
}

while (line.length > 0) {
  const next = line.splice(0, line.includes(",") ? line.indexOf(",") + 1 : line.length);
  try {
    await run(...next.filter((word) => word !== ","));
  } catch (e) {
    console.log(`error ${e.code ?? ""} ${e.message}`);
  }
}
await session.close();
await client.close();
console.log("closed");
process.exit(0);
