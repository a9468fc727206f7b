// An agent on the TypeScript SDK: node agent.mjs COMMAND ARG… or a URL. It
// starts a task, answers its question, reads its result, cancels another, and
// prints what it came to, without what differs from run to run.
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const sdk = (p) => import(pathToFileURL(join(process.env.SDK, "dist/esm", p)).href);
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { SSEClientTransport } = await sdk("client/sse.js");
const { ElicitRequestSchema, CallToolResultSchema, CreateMessageRequestSchema } = await sdk("types.js");

const ids = new Map();
const say = (what, v) =>
  console.log(what, JSON.stringify(v, (k, x) => {
    if (k === "createdAt" || k === "lastUpdatedAt") return "TIME";
    if (k === "taskId") {
      if (!ids.has(x)) ids.set(x, "task-" + (ids.size + 1));
      return ids.get(x);
    }
    return typeof x === "string" ? x.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME") : x;
  }));

const client = new Client({ name: "ts-agent", version: "1" }, {
  capabilities: { elicitation: { form: {} }, sampling: {}, tasks: { list: {}, cancel: {} } },
});
client.setRequestHandler(ElicitRequestSchema, async (r) => {
  say("asked", r.params.message);
  return { action: "accept", content: { interpretation: "programming" } };
});
client.setRequestHandler(CreateMessageRequestSchema, async () => ({
  role: "assistant", model: "m", content: { type: "text", text: "words" },
}));
const [target, ...args] = process.argv.slice(2);
const url = target.startsWith("http") ? new URL(target) : null;
await client.connect(
  !url ? new StdioClientTransport({ command: target, args, stderr: "ignore" })
  : url.pathname.endsWith("/sse") ? new SSEClientTransport(url)
  : new StreamableHTTPClientTransport(url));
say("server", client.getServerVersion());
say("capabilities", client.getServerCapabilities());
const { tools } = await client.listTools();
say("tools", tools.map((t) => t.name));
say("echo", await client.callTool({ name: "echo", arguments: { message: "é\u2028\u{1F600} ok" } }));

for await (const m of client.experimental.tasks.callToolStream(
  { name: "simulate-research-query", arguments: { topic: "python", ambiguous: true } },
  CallToolResultSchema, { task: { ttl: 300000 } })) {
  // How often a task is seen in one state is a matter of time.
  if (m.type === "taskStatus" && say.last === m.task.status) continue;
  say.last = m.task?.status;
  say(m.type, m.type === "taskStatus" ? m.task.status : m);
}
const stream = client.experimental.tasks.callToolStream(
  { name: "simulate-research-query", arguments: { topic: "go" } }, CallToolResultSchema, { task: { ttl: 300000 } });
const made = (await stream.next()).value;
say("second", made);
say("cancelled", await client.experimental.tasks.cancelTask(made.task.taskId));
say("list", (await client.experimental.tasks.listTasks()).tasks.length);
await client.close();
process.exit(0);
