// A client made with the official TypeScript library. It calls scarce__work and
// prints what it hears. Arguments: the library's folder, the URL of the MCP
// endpoint, the token to show, the name of the work, and "abort" to give it up
// once it is in line.
const [library, url, token, name, abort] = process.argv.slice(2);
const { Client } = await import(`${library}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${library}/client/streamableHttp.js`);

const client = new Client({ name: "e2e", version: "1" }, { capabilities: {} });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
await client.connect(transport);
const { tools } = await client.listTools();
console.log(`tools ${tools.map((t) => t.name).sort().join(" ")}`);
const given = new AbortController();
try {
  const result = await client.callTool({ name: "scarce__work", arguments: { name } }, undefined, {
    signal: given.signal,
    onprogress: (p) => {
      console.log(`progress ${p.message}`);
      if (abort) given.abort("enough");
    },
  });
  console.log(`result ${result.content[0].text}`);
} catch (e) {
  console.log(`error ${e.message ?? e}`);
}
await transport.terminateSession();
await client.close();
console.log("closed");
