"""An agent on FastMCP's client: agent.py COMMAND ARG… or a URL. It runs a task,
answers what another asks, and prints what it came to."""

import asyncio
import json
import sys

import fastmcp_tasks  # noqa: F401 (makes clients declare the extension)
import mcp_types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


def say(what, v):
    print(what, json.dumps(v, sort_keys=True, default=str), flush=True)


questions = []  # two that are asked at once come in any order


async def answer(message, response_type, params, context):
    questions.append(message)
    return {"ok": True, "name": "ada", "n": 3}


def plain(r):
    return [c.model_dump(mode="json", exclude_none=True) for c in r.content]


async def main():
    target, *args = sys.argv[1:]
    t = target if target.startswith("http") else StdioTransport(target, args, keep_alive=False)
    async with Client(t, elicitation_handler=answer,
                      client_info=mcp_types.Implementation(name="fastmcp-agent", version="1")) as c:
        say("tools", sorted(t.name for t in await c.list_tools()))
        say("add", plain(await c.call_tool("add", {"a": 1, "b": 2})))
        say("crunch", plain(await c.call_tool("crunch", {"seconds": 0.5, "text": "é ok"})))
        say("deploy", plain(await c.call_tool("deploy", {"target": "prod"}, raise_on_error=False)))
        try:
            say("broken", plain(await c.call_tool("broken", {}, raise_on_error=False)))
        except Exception as e:
            say("broken", str(e))
        say("asked", sorted(questions))


asyncio.run(main())
