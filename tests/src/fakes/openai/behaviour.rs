//! The behaviour of each model.
use serde_json::{Map, Value, json};

use super::refusal;
use super::shape::Shape;

/// The models with their descriptions.
pub const MODELS: &[(&str, &str)] = &[
    ("echo", "repeats the user's last message"),
    ("tools", "calls the first tool with the user's words for every property, then says its result"),
    ("parallel-tools", "says \"One moment.\" and calls all tools at once, then says their results"),
    ("announces-at-length", "as `parallel-tools`; what it says first takes longer than five seconds"),
    ("twice", "says \"One moment.\" and calls the first tool twice, then says the results"),
    ("unknown-tool", "calls an unknown tool, then says the result"),
    ("bad-arguments", "calls the first tool with half a JSON object, then says the result"),
    ("says-goodbye", "calls end_call with last words"),
    ("repeats", "always says the same"),
    ("says-nothing", "gives an empty answer"),
    ("caller", "says the quoted lines of its task one by one, then calls hang_up"),
    ("judge", "as a judge: passed when a turn contains the criterion; in a code fence"),
    (
        "judge-of-two-minds",
        "as `judge`; with an odd seed, nothing holds, and with a seed over 3, it cannot tell",
    ),
    ("judge-garbled-once", "as `judge`, after an answer that is not JSON"),
    ("judge-garbled", "as a judge that never answers with JSON"),
    ("analyst", "as an analyst: positive"),
    ("garbage", "answers with a web page"),
    ("endless", "never stops"),
    ("hangs", "never answers"),
    ("hangs-halfway", "starts an answer and hangs"),
    ("cut", "breaks off the first time, then echoes"),
    ("cut-always", "always breaks off"),
    (
        "writes-slowly",
        "says [`FIRST_SENTENCE`], pauses, and goes on; then calls its tools, and says their results",
    ),
    ("breaks-off", "says [`FIRST_SENTENCE`] and breaks off, always"),
    ("rate-limited", "429 with Retry-After: 1 the first time, then echoes"),
    ("no-quota", "429 for an empty account"),
    ("broken", "500 always"),
    ("broken-once", "503 the first time, then echoes"),
    ("rejects", "400 always"),
    ("picky", "refuses `seed`, else echoes"),
    (
        "strict-…",
        "refuses `seed` and `max_completion_tokens` in the words of [`refusal::FORMS`], else echoes",
    ),
    ("no-usage", "echoes without token counts"),
    ("refuses", "answers with a refusal"),
    ("error-in-stream", "begins to answer, then reports an error in the stream"),
    ("shape-no-index", "as `tools`; its calls have no index"),
    ("shape-zero-index", "as `parallel-tools`; every call has index 0"),
    ("shape-whole", "as `parallel-tools`; every call comes whole, in one piece"),
    ("shape-changing-ids", "as `tools`; every piece of a call has another id"),
    ("shape-stop", "as `tools`; finish_reason is `stop`"),
    ("shape-length", "as `echo`; finish_reason is `length`"),
    ("shape-no-done", "as `tools`; no `[DONE]`"),
    ("shape-crlf", "as `tools`; lines end in CR LF, with comments between"),
    ("shape-one-byte", "as `tools`; every byte is sent by itself"),
    ("shape-parts", "as `echo`; content is a list of parts"),
    ("shape-not-streamed", "as `tools`; never streams"),
];

/// The beginning of an answer that comes slowly.
pub const FIRST_SENTENCE: &str = "That is a very good question.";
/// The same with a part of what follows.
const BEGUN: &str = "That is a very good question. On Sat";
/// The rest of it.
pub const SECOND_SENTENCE: &str = "On Saturday we open at ten.";

/// What a model says that announces at length.
const LONG_ANNOUNCEMENT: &str = "One moment while I look for somebody who knows more about this than I do and who has the \
                                 time to talk with you about it because at this hour of the day most of them are on the \
                                 telephone or out in the house by the lake.";

/// The reaction to a request.
pub enum Act {
    /// A completion.
    Reply(Reply),
    /// An error instead of a completion.
    Error {
        /// The HTTP status.
        status: u16,
        /// `message`.
        message: String,
        /// `type`.
        kind: &'static str,
        /// `code`; empty for null.
        code: &'static str,
        /// `param`; empty for null.
        param: &'static str,
    },
    /// Another response: its status, content type and body.
    Raw(u16, &'static str, String),
    /// A completion with a pause after its first sentence.
    Slow(Reply),
    /// The start of a completion with this text, then a closed connection.
    Cut(&'static str),
    /// A completion that never ends.
    Endless,
    /// No response at all.
    Hang,
    /// A started response without content.
    HangHalfway,
}

/// A completion.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// A refusal instead of the text.
    pub refusal: String,
    /// Names and arguments (as text) of tool calls.
    pub calls: Vec<(String, String)>,
    /// The wire format.
    pub shape: Shape,
}

impl Reply {
    /// A completion of text only.
    pub fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn call(name: impl Into<String>, arguments: &Value) -> Self {
        Self { calls: vec![(name.into(), arguments.to_string())], ..Self::default() }
    }
}

/// The model's reaction to this request; `first` is whether this key asks it for the first time.
pub fn act(model: &str, body: &Value, first: bool) -> Act {
    let echo = || Reply::say(last_user(body));
    Act::Reply(match model {
        "echo"
        | "tools"
        | "parallel-tools"
        | "announces-at-length"
        | "twice"
        | "unknown-tool"
        | "bad-arguments"
        | "unfit-arguments"
        | "says-goodbye"
        | "repeats"
        | "writes-slowly"
        | "breaks-off"
            if looks_back(body) =>
        {
            analyst()
        }
        "echo" => echo(),
        "tools" => tools(body, Shape::Usual),
        "parallel-tools" => parallel_tools(body, Shape::Usual),
        "announces-at-length" => after_tools(body).unwrap_or_else(|| Reply {
            text: LONG_ANNOUNCEMENT.to_owned(),
            ..parallel_tools(body, Shape::Usual)
        }),
        "twice" => {
            let mut reply = parallel_tools(body, Shape::Usual);
            reply.calls = reply.calls.iter().take(1).cycle().take(2).cloned().collect();
            reply
        }
        "unknown-tool" => after_tools(body).unwrap_or_else(|| Reply::call("no_such_tool", &json!({"x": 1}))),
        "bad-arguments" => after_tools(body).unwrap_or_else(|| Reply {
            calls: vec![(own_tools(body)[0].clone(), "{\"x\": ".to_owned())],
            ..Reply::default()
        }),
        "unfit-arguments" => after_tools(body)
            .unwrap_or_else(|| Reply::call(own_tools(body)[0].clone(), &json!({"order": 17}))),
        "says-goodbye" => Reply::call("end_call", &json!({"last_words": "Goodbye, and thank you."})),
        "repeats" => Reply::say("I am here to help."),
        "says-nothing" => Reply::say(""),
        "caller" => caller(body),
        "judge-garbled-once" if first => Reply::say("Let me think about {that}."),
        "judge" | "judge-garbled-once" => judge(body),
        "judge-of-two-minds" => match body["seed"].as_u64() {
            Some(seed) if seed > 3 => Reply::say(r#"{"passed": null, "reason": "It cannot be told."}"#),
            Some(seed) if seed % 2 == 1 => Reply::say(r#"{"passed": false, "reason": "Nothing holds."}"#),
            _ => judge(body),
        },
        "judge-garbled" => Reply::say("Hard to say."),
        "analyst" => analyst(),
        "garbage" => return Act::Raw(200, "text/html", "<html><body>Welcome to nginx!</body></html>".into()),
        "endless" => return Act::Endless,
        "writes-slowly" => {
            return after_tools(body).map_or_else(
                || {
                    let text = format!("{FIRST_SENTENCE} {SECOND_SENTENCE}");
                    Act::Slow(Reply { text, ..parallel_tools(body, Shape::Usual) })
                },
                Act::Reply,
            );
        }
        "breaks-off" => return Act::Cut(BEGUN),
        "hangs" => return Act::Hang,
        "hangs-halfway" => return Act::HangHalfway,
        "cut" if first => return Act::Cut("This will not "),
        "cut-always" => return Act::Cut("This will not "),
        "rate-limited" if first => {
            return error(429, "Rate limit reached", "requests", "rate_limit_exceeded");
        }
        "broken-once" if first => return error(503, "Overloaded", "server_error", ""),
        "cut" | "rate-limited" | "broken-once" => echo(),
        "no-quota" => {
            let message = "You exceeded your current quota, see https://x.example.";
            return error(429, message, "insufficient_quota", "insufficient_quota");
        }
        "broken" => return error(500, "The server had an error", "server_error", ""),
        "rejects" => {
            return error(400, "This model's maximum context length is 7", "invalid_request_error", "");
        }
        "picky" if body.get("seed").is_some() => {
            return Act::Error {
                status: 400,
                message: "Unsupported parameter: 'seed'".to_owned(),
                kind: "invalid_request_error",
                code: "unsupported_parameter",
                param: "seed",
            };
        }
        "picky" => echo(),
        strict if strict.starts_with("strict-") => match refusal::of(strict, body) {
            Some((status, body)) => return Act::Raw(status, "application/json", body),
            None => echo(),
        },
        "no-usage" => Reply { shape: Shape::NoUsage, ..echo() },
        "refuses" => Reply { refusal: "I cannot help with that.".to_owned(), ..Reply::default() },
        "error-in-stream" => Reply { shape: Shape::Error, ..echo() },
        "shape-no-index" => tools(body, Shape::NoIndex),
        "shape-zero-index" => parallel_tools(body, Shape::ZeroIndex),
        "shape-whole" => parallel_tools(body, Shape::Whole),
        "shape-changing-ids" => tools(body, Shape::ChangingIds),
        "shape-stop" => tools(body, Shape::Stop),
        "shape-no-done" => tools(body, Shape::NoDone),
        "shape-crlf" => tools(body, Shape::CrLf),
        "shape-one-byte" => tools(body, Shape::OneByte),
        "shape-length" => Reply { shape: Shape::Length, ..echo() },
        "shape-parts" => Reply { shape: Shape::Parts, ..echo() },
        "shape-not-streamed" => tools(body, Shape::NotStreamed),
        other => {
            let message = format!("The model `{other}` does not exist or you do not have access to it.");
            return Act::Error {
                status: 404,
                message,
                kind: "invalid_request_error",
                code: "model_not_found",
                param: "",
            };
        }
    })
}

fn error(status: u16, message: &str, kind: &'static str, code: &'static str) -> Act {
    Act::Error { status, message: message.to_owned(), kind, code, param: "" }
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

fn last_user(body: &Value) -> String {
    let said = messages(body).iter().rev().find(|message| message["role"] == "user");
    said.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// The names of the tools, except those for hanging up.
fn own_tools(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names = tools.iter().filter_map(|tool| tool["function"]["name"].as_str());
    names.filter(|name| !matches!(*name, "end_call" | "hang_up")).map(str::to_owned).collect()
}

/// Repeats the tool results.
fn after_tools(body: &Value) -> Option<Reply> {
    let results = messages(body).iter().rev().take_while(|message| message["role"] == "tool");
    let mut results: Vec<&str> = results.filter_map(|message| message["content"].as_str()).collect();
    results.reverse();
    (!results.is_empty()).then(|| Reply::say(format!("It says: {}", results.join(" and "))))
}

fn tools(body: &Value, shape: Shape) -> Reply {
    let reply = after_tools(body).unwrap_or_else(|| match own_tools(body).first() {
        Some(name) => Reply::call(name.clone(), &arguments(body, name)),
        None => Reply::say(last_user(body)),
    });
    Reply { shape, ..reply }
}

fn parallel_tools(body: &Value, shape: Shape) -> Reply {
    let reply = after_tools(body).unwrap_or_else(|| {
        let names = own_tools(body).into_iter();
        let calls = names.map(|name| (name.clone(), arguments(body, &name).to_string())).collect();
        Reply { text: "One moment.".to_owned(), calls, ..Reply::default() }
    });
    Reply { shape, ..reply }
}

/// The user's last line as the value of every property.
fn arguments(body: &Value, name: &str) -> Value {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let tool = tools.iter().find(|tool| tool["function"]["name"] == name);
    let properties = tool.and_then(|tool| tool["function"]["parameters"]["properties"].as_object());
    let words = Value::from(last_user(body));
    let filled = properties.into_iter().flatten().map(|(name, _)| (name.clone(), words.clone()));
    Value::Object(filled.collect::<Map<_, _>>())
}

fn caller(body: &Value) -> Reply {
    let prompt = messages(body).first().and_then(|message| message["content"].as_str()).unwrap_or_default();
    let task = prompt.rsplit("\n\n# ").next().unwrap_or_default();
    let lines: Vec<&str> = task.split('"').skip(1).step_by(2).collect();
    let said = messages(body).iter().filter(|message| message["role"] == "assistant").count();
    match lines.get(said) {
        Some(line) => Reply::say(*line),
        None => Reply { text: "Thank you, goodbye.".to_owned(), ..Reply::call("hang_up", &json!({})) },
    }
}

/// Whether the request asks for an analysis of a call.
fn looks_back(body: &Value) -> bool {
    let system = messages(body).first().and_then(|message| message["content"].as_str());
    system.is_some_and(|prompt| prompt.starts_with("You look back at"))
}

fn analyst() -> Reply {
    Reply::say("{\"summary\": \"They asked and were told.\", \"sentiment\": \"positive\"}")
}

fn judge(body: &Value) -> Reply {
    let question: Value = serde_json::from_str(&last_user(body)).unwrap_or_default();
    let criterion = question["criterion"].as_str().unwrap_or_default().to_lowercase();
    let turns = question["turns"].as_array().map_or(&[][..], Vec::as_slice);
    let holds = |turn: &&Value| turn["text"].as_str().unwrap_or_default().to_lowercase().contains(&criterion);
    let found = turns.iter().find(holds);
    let ruling = json!({"passed": found.is_some(), "matched_index": found.map(|turn| turn["index"].clone()),
        "reason": if found.is_some() { "It was said." } else { "Nobody said it." }});
    Reply::say(format!("Here is my ruling:\n```json\n{ruling}\n```"))
}
