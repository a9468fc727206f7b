"""A server with 2025-11-25 tasks on the Python SDK's experimental support.

Tools: slow (works in steps, says so), approve (asks in mid-run), plan (asks
twice, in two rounds), haiku (asks for sampling in mid-run), broken (fails),
refused (ends with the tool's own error), ask_as_task (asks the client to run an
elicitation as a task). It speaks stdio, or Streamable HTTP with --listen PORT.
"""

import argparse
import asyncio
import contextlib
import socket

import mcp.types as t
from mcp.server.lowlevel import Server

server = Server("python-core", "1.0.0")
server.experimental.enable_tasks()
TASK = t.ToolExecution(taskSupport="required")
NOTHING = {"type": "object", "properties": {}}


def text(words, error=False):
    return t.CallToolResult(content=[t.TextContent(type="text", text=words)], isError=error)


@server.list_tools()
async def list_tools():
    steps = {"type": "object", "properties": {"steps": {"type": "integer", "minimum": 1}}, "required": ["steps"]}
    return [
        t.Tool(name="slow", description="Works in steps.", inputSchema=steps, execution=TASK),
        t.Tool(name="approve", description="Asks before it goes on.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="plan", description="Asks twice.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="refused", description="Ends with an error of its own.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="haiku", description="Asks for a poem.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="broken", description="Fails.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="ask_as_task", description="Asks the client as a task.", inputSchema=NOTHING, execution=TASK),
        t.Tool(name="quick", description="Answers at once.", inputSchema=NOTHING),
    ]


FORM = {"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]}


async def say(task, words):
    """Says how far a task is. Where it has ended meanwhile (cancelled, expired)
    the SDK would fail it once more and with that end the whole server, so its
    work is left where it is."""
    try:
        await task.update_status(words)
    except ValueError:
        await asyncio.Event().wait()


async def slow(task, args):
    for i in range(args["steps"]):
        await say(task, f"step {i + 1} of {args['steps']}")
        await asyncio.sleep(0.1)
    await say(task, "done")
    return text(f"{args['steps']} steps done")


async def approve(task, args):
    answer = await task.elicit(message="Go on?", requestedSchema=FORM)
    return text(f"{answer.action}: {answer.content}")


async def plan(task, args):
    first = await task.elicit(message="Go on?", requestedSchema=FORM)
    if first.action != "accept" or not first.content["go"]:
        return text("not planned")
    many = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3}}, "required": ["n"]}
    second = await task.elicit(message="How many?", requestedSchema=many)
    return text(f"planned {second.content['n']}")


async def refused(task, args):
    return text("there is no such branch", error=True)


async def haiku(task, args):
    said = await task.create_message(
        messages=[t.SamplingMessage(role="user", content=t.TextContent(type="text", text="A haiku on queues."))],
        max_tokens=100,
    )
    return text(said.content.text)


async def broken(task, args):
    raise RuntimeError("the disk is full")


async def ask_as_task(task, args):
    answer = await task.elicit_as_task(message="Go on, in your own time?", requestedSchema=FORM, ttl=60000)
    return text(f"{answer.action}: {answer.content}")


WORK = {f.__name__: f for f in (slow, approve, plan, refused, haiku, broken, ask_as_task)}


@server.call_tool()
async def call_tool(name, args):
    if name == "quick":
        return [t.TextContent(type="text", text="quick")]
    work = WORK[name]
    return await server.request_context.experimental.run_task(
        lambda task: work(task, args), model_immediate_response=f"{name} has begun"
    )


async def stdio():
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (r, w):
        await server.run(r, w, server.create_initialization_options())


def http(port):
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with manager.run():
            yield

    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    print(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", flush=True)
    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[sock])


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--listen", type=int)
    port = p.parse_args().listen
    if port is None:
        asyncio.run(stdio())
    else:
        http(port)
