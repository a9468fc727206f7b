"""A server of the 2026-07-28 tasks extension on FastMCP and fastmcp-tasks.

Usage: fastmcp_tasks_server.py [--listen PORT]   (stdio without --listen)

Tools, each made to show one thing:
  crunch(seconds, text)  a task that completes with text
  deploy(target)         a task that asks two questions at once, then one more
  wobble()               a task that completes with isError
  broken()               a task that fails with a JSON-RPC error
  only_task()            runs only as a task (-32021 on a plain call)
  greet(name)            asks during a plain call, by an InputRequiredResult
  locate()               asks for roots during a task
  region(region)         mirrors its argument into Mcp-Param-Region
  add(a, b)              never a task
"""

import asyncio
import sys
from datetime import timedelta
from typing import Annotated

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp.shared.exceptions import MCPError
from pydantic import Field

mcp = FastMCP("fastmcp-tasks-peer", version="1")
mcp.add_extension(TasksExtension())

quick = TaskConfig(mode="optional", poll_interval=timedelta(milliseconds=200))
always = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200))


def form(message, properties, required):
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(
            message=message,
            requested_schema={
                "type": "object",
                "properties": properties,
                "required": required,
            },
        )
    )


def content(responses, key):
    """What the person accepted for one key, or None."""
    r = (responses or {}).get(key)
    if r is None:
        return None
    r = r if isinstance(r, dict) else r.model_dump(by_alias=True)
    return r.get("content") if r.get("action") == "accept" else None


@mcp.tool(task=quick)
async def crunch(seconds: float = 1, text: str = "done") -> str:
    await asyncio.sleep(seconds)
    return text


@mcp.tool(task=quick)
async def deploy(ctx: Context, target: str = "staging"):
    got = ctx.input_responses or {}
    if ctx.request_state is None:
        return mcp_types.InputRequiredResult(
            input_requests={
                "approve": form(
                    f"Deploy to {target}?", {"ok": {"type": "boolean"}}, ["ok"]
                ),
                "who": form("Who approves?", {"name": {"type": "string"}}, ["name"]),
            },
            request_state="asked",
        )
    if ctx.request_state == "asked":
        ok, who = content(got, "approve"), content(got, "who")
        if not ok or not ok["ok"] or not who:
            return "not deployed"
        return mcp_types.InputRequiredResult(
            input_requests={
                "sure": form(
                    f"{who['name']}, how many replicas?",
                    {"n": {"type": "integer", "minimum": 1, "maximum": 9}},
                    ["n"],
                )
            },
            request_state=f"sure:{who['name']}",
        )
    n = content(got, "sure")
    return f"deployed {n['n'] if n else 0} to {target} for {ctx.request_state[5:]}"


@mcp.tool(task=quick)
async def wobble() -> str:
    raise ValueError("the tool itself went wrong")


@mcp.tool(task=quick)
async def broken() -> str:
    raise MCPError(code=-32603, message="the rate limit is exceeded")


@mcp.tool(task=always)
async def only_task() -> str:
    return "as a task"


@mcp.tool
async def greet(ctx: Context, name: str = ""):
    if ctx.input_responses is None:
        return mcp_types.InputRequiredResult(
            input_requests={
                "greeting": form("Which greeting?", {"g": {"type": "string"}}, ["g"])
            },
            request_state="<greet> & \u4e16",
        )
    g = content(ctx.input_responses, "greeting")
    return f"{g['g'] if g else 'nothing'}, {name}: {ctx.request_state}"


@mcp.tool(task=quick)
async def locate(ctx: Context):
    if ctx.input_responses is None:
        return mcp_types.InputRequiredResult(
            input_requests={"roots": mcp_types.ListRootsRequest()}
        )
    r = ctx.input_responses["roots"]
    r = r if isinstance(r, dict) else r.model_dump(by_alias=True)
    return ", ".join(str(x["uri"]) for x in r["roots"])


@mcp.tool
async def region(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    from fastmcp.server.dependencies import get_http_request

    try:
        return get_http_request().headers.get("mcp-param-region", "no header")
    except RuntimeError:
        return "no header"


@mcp.tool
async def add(a: int, b: int) -> int:
    return a + b


if __name__ == "__main__":
    if sys.argv[1:2] == ["--listen"]:
        mcp.run(
            transport="http",
            host="127.0.0.1",
            port=int(sys.argv[2]),
            show_banner=False,
            log_level="WARNING",
        )
    else:
        mcp.run(transport="stdio", show_banner=False, log_level="WARNING")
