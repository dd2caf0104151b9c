// An MCP server, made with the official TypeScript library, whose tools are
// those that the conformance suite asks for. Argument: the library's folder.
const [library] = process.argv.slice(2);
const { Server } = await import(`${library}/server/index.js`);
const { StdioServerTransport } = await import(`${library}/server/stdio.js`);
const { CallToolRequestSchema, ListToolsRequestSchema, McpError } = await import(`${library}/types.js`);

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (t) => ({ type: "text", text: t });
const image = { type: "image", data: pixel, mimeType: "image/png" };
const resource = (uri, mimeType, t) => ({ type: "resource", resource: { uri, mimeType, text: t } });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const wide = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" }, contactMethod: { type: "string", enum: ["phone", "email"] }, phone: { type: "string" }, email: { type: "string" } },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

let changed = false;
const tools = {
  test_simple_text: () => [text("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: silence, mimeType: "audio/wav" }],
  test_embedded_resource: () => [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  test_multiple_content_types: () => [text("Multiple content types test:"), image, resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')],
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_tool_with_progress: async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      }
      await sleep(20);
    }
    return [text("done")];
  },
  test_missing_capability: () => {
    throw new McpError(-32021, "this tool samples", { requiredCapabilities: { sampling: {} } });
  },
  test_streaming_elicitation: () => [text("nothing to ask")],
  test_logging_tool: async (_, extra) => {
    await extra.sendNotification({ method: "notifications/message", params: { level: "info", data: "a word" } });
    return [text("logged")];
  },
  test_trigger_tool_change: async () => {
    changed = !changed;
    await server.sendToolListChanged();
    return [text("the tools are others")];
  },
  test_custom_headers: ({ region }) => [text(`region ${region}`)],
  json_schema_2020_12_tool: () => [text("wide")],
};
const schemas = {
  test_custom_headers: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } }, required: ["region"] },
  json_schema_2020_12_tool: wide,
};

const server = new Server({ name: "conformance", version: "1" }, { capabilities: { tools: { listChanged: true }, logging: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [...Object.keys(tools), ...(changed ? ["test_come_and_gone"] : [])].map((name) => ({
    name,
    description: `The suite's ${name}.`,
    inputSchema: schemas[name] ?? { type: "object" },
  })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
  const tool = tools[params.name];
  try {
    return { content: await tool(params.arguments ?? {}, extra) };
  } catch (e) {
    if (e instanceof McpError) throw e;
    return { content: [text(e.message)], isError: true };
  }
});
await server.connect(new StdioServerTransport());
