"""An agent on FastMCP's client: agent.py COMMAND ARG… or a URL. It runs a task,
answers what another asks, and prints what it came to."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


def say(what, v):
    print(what, json.dumps(v, sort_keys=True, default=str), flush=True)


async def answer(message, response_type, params, context):
    say("asked", message)
    return {"ok": True, "name": "ada", "n": 3}


def plain(r):
    return [c.model_dump(mode="json", exclude_none=True) for c in r.content]


async def main():
    target, *args = sys.argv[1:]
    t = target if target.startswith("http") else StdioTransport(target, args, keep_alive=False)
    async with Client(t, elicitation_handler=answer) as c:
        say("tools", sorted(t.name for t in await c.list_tools()))
        say("add", plain(await c.call_tool("add", {"a": 1, "b": 2})))
        say("crunch", plain(await c.call_tool("crunch", {"seconds": 0.5, "text": "é ok"})))
        say("deploy", plain(await c.call_tool("deploy", {"target": "prod"}, raise_on_error=False)))
        try:
            say("broken", plain(await c.call_tool("broken", {}, raise_on_error=False)))
        except Exception as e:
            say("broken", str(e))


asyncio.run(main())
