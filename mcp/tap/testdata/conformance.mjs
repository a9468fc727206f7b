// The client under test for @modelcontextprotocol/conformance, on the
// TypeScript SDK: node conformance.mjs URL. RESOURCE is the server's own address
// where URL is that of a tap before it: what the server's metadata of its sign-in
// names (RFC 9728, section 3.3).
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const sdk = (p) => import(pathToFileURL(join(process.env.SDK, "dist/esm", p)).href);
const { Client } = await sdk("client/index.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { UnauthorizedError } = await sdk("client/auth.js");
const { ClientCredentialsProvider, PrivateKeyJwtProvider } = await sdk("client/auth-extensions.js");
const { checkResourceAllowed } = await sdk("shared/auth-utils.js");
const { ElicitRequestSchema } = await sdk("types.js");

const url = new URL(process.argv.at(-1));
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

async function validateResourceURL(server, resource) {
  if (!resource) return undefined;
  if (!checkResourceAllowed({ requestedResource: process.env.RESOURCE ?? server, configuredResource: resource })) {
    throw new Error(`the metadata is of ${resource}`);
  }
  return new URL(resource);
}

// A person with a browser: the page sends back at once, with a code.
class Person {
  redirectUrl = "http://localhost:3000/callback";
  clientMetadata = { client_name: "conformance-agent", redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] };
  clientMetadataUrl = scenario === "auth/basic-cimd" ? "https://conformance-test.local/client-metadata.json" : undefined;
  client = given.client_id && { client_id: given.client_id, client_secret: given.client_secret };
  validateResourceURL = validateResourceURL;
  clientInformation() { return this.client; }
  saveClientInformation(c) { this.client = c; }
  tokens() { return this.kept; }
  saveTokens(t) { this.kept = t; }
  saveCodeVerifier(v) { this.verifier = v; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(page) {
    const r = await fetch(page, { redirect: "manual" });
    this.code = new URL(r.headers.get("location")).searchParams.get("code");
  }
}

function provider() {
  const o = { clientId: given.client_id, clientSecret: given.client_secret, clientName: "conformance-agent",
    privateKey: given.private_key_pem, algorithm: given.signing_algorithm ?? "ES256" };
  const p = scenario.endsWith("client-credentials-basic") ? new ClientCredentialsProvider(o)
    : scenario.endsWith("client-credentials-jwt") ? new PrivateKeyJwtProvider(o) : new Person();
  p.validateResourceURL = validateResourceURL;
  return p;
}

const auth = scenario.startsWith("auth/") ? provider() : undefined;
let transport;

// What a server asks before the stream for it is open is lost, so that is
// waited for.
let opened;
const open = new Promise((done) => { opened = done; });
async function observed(u, init) {
  const r = await fetch(u, init);
  if ((init?.method ?? "GET") === "GET" && String(u) === String(url)) opened();
  return r;
}

async function connect() {
  const client = new Client({ name: "conformance-agent", version: "1" },
    { capabilities: { elicitation: { form: { applyDefaults: true } } } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: {} }));
  transport = new StreamableHTTPClientTransport(url, { authProvider: auth, fetch: observed });
  await client.connect(transport);
  return client;
}

// signed does something, and after a sign-in once more, three times at most.
async function signed(f) {
  for (let n = 0; ; n++) {
    try {
      return await f();
    } catch (e) {
      if (!(e instanceof UnauthorizedError) || !auth?.code || n === 3) throw e;
      const code = auth.code;
      auth.code = undefined;
      await transport.finishAuth(code);
    }
  }
}

const client = await signed(connect);
await Promise.race([open, new Promise((done) => setTimeout(done, 5000))]);
const args = { add_numbers: { a: 5, b: 3 } };
for (const t of (await signed(() => client.listTools())).tools) {
  await signed(() => client.callTool({ name: t.name, arguments: args[t.name] ?? {} }));
}
await client.close();
process.exit(0);
