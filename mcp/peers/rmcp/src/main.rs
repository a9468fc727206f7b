//! A server of the 2026-07-28 tasks extension on rmcp's TaskManager, over stdio.
//!
//! Tools, each made to show one thing:
//!   crunch(ms, text)  a task that says how far it is, completes, can be cancelled
//!   deploy()          a task that asks twice, in two rounds
//!   wobble()          a task that completes with isError
//!   broken()          a task that fails with a JSON-RPC error
//!   lapse()           a task whose time is over before its work
//!   echo(text)        never a task

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    transport::stdio,
};
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Peer {
    tasks: TaskManager,
}

fn object(v: Value) -> JsonObject {
    match v {
        Value::Object(m) => m,
        _ => JsonObject::new(),
    }
}

fn text(s: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(s.into())])
}

/// Asks for one field and gives what was accepted.
async fn ask(ctx: &TaskContext, key: &str, message: &str, field: &str, kind: &str) -> Result<Value, TaskExit> {
    let request = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }});
    let request = serde_json::from_value(request)
        .map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
    let answer = ctx.request_input(key, request).await?;
    Ok(if answer["action"] == "accept" { answer["content"][field].clone() } else { Value::Null })
}

async fn crunch(ctx: TaskContext, ms: u64, said: String) -> Result<CallToolResult, TaskExit> {
    for i in 1..=10 {
        ctx.set_status_message(format!("part {i} of 10"));
        tokio::select! {
            _ = ctx.cancelled() => return Err(TaskExit::Cancelled),
            _ = tokio::time::sleep(Duration::from_millis(ms / 10)) => {}
        }
    }
    Ok(text(said))
}

async fn deploy(ctx: TaskContext) -> Result<CallToolResult, TaskExit> {
    let target = ask(&ctx, "where", "Where to?", "target", "string").await?;
    let Some(target) = target.as_str() else { return Ok(text("not deployed")) };
    let n = ask(&ctx, "many", "How many replicas?", "n", "integer").await?;
    Ok(text(format!("deployed {n} to {target}")))
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(Implementation::new("rmcp-tasks", "1"))
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &'static str, description: &'static str, properties: Value| {
            Tool::new(name, description, object(json!({"type": "object", "properties": properties})))
        };
        Ok(ListToolsResult::with_all_items(vec![
            tool("crunch", "Works in ten parts.", json!({"ms": {"type": "integer"}, "text": {"type": "string"}})),
            tool("deploy", "Asks twice.", json!({})),
            tool("wobble", "Completes with its own error.", json!({})),
            tool("broken", "Fails.", json!({})),
            tool("lapse", "Outlives its time.", json!({})),
            tool("echo", "Answers at once.", json!({"text": {"type": "string"}})),
        ]))
    }

    async fn call_tool(&self, call: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(call.arguments.unwrap_or_default());
        let said = args["text"].as_str().unwrap_or("done").to_string();
        let ms = args["ms"].as_u64().unwrap_or(300);
        let options = TaskOptions::new().with_poll_interval_ms(200);
        let task = match call.name.as_ref() {
            "echo" => return Ok(text(said).into()),
            "crunch" => self.tasks.spawn(options, move |c| Box::pin(crunch(c, ms, said))),
            "deploy" => self.tasks.spawn(options, |c| Box::pin(deploy(c))),
            "wobble" => self.tasks.spawn(options, |_| {
                Box::pin(async { Ok(CallToolResult::error(vec![ContentBlock::text("the tool itself went wrong")])) })
            }),
            "broken" => self.tasks.spawn(options, |_| {
                Box::pin(async { Err(ErrorData::internal_error("the disk is full", None).into()) })
            }),
            "lapse" => self.tasks.spawn(options.with_ttl_ms(1000), |c| {
                Box::pin(async move {
                    c.cancelled().await;
                    Err(TaskExit::Cancelled)
                })
            }),
            other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
        };
        Ok(CreateTaskResult::new(task).into())
    }

    async fn get_task(&self, r: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&r.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, r: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&r.task_id, r.input_responses)
    }

    async fn cancel_task(&self, r: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&r.task_id)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Peer::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
