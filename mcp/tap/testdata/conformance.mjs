// The client under test for @modelcontextprotocol/conformance, on the
// TypeScript SDK: node conformance.mjs URL.
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const sdk = (p) => import(pathToFileURL(join(process.env.SDK, "dist/esm", p)).href);
const { Client } = await sdk("client/index.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { ElicitRequestSchema } = await sdk("types.js");

const client = new Client({ name: "conformance-agent", version: "1" },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: {} }));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv.at(-1))));
const args = { add_numbers: { a: 5, b: 3 } };
for (const t of (await client.listTools()).tools) {
  await client.callTool({ name: t.name, arguments: args[t.name] ?? {} });
}
await client.close();
process.exit(0);
