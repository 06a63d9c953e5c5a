//! Strict parsing of TwiML.
use http::Uri;
use roxmltree::{Document as Xml, Node};

use super::api::{is_e164, is_web_url};
use crate::fakes::carrier::wire::{Instruction, Told};

/// Largest size of a document.
const DOCUMENT_BYTES_MAX: usize = 64 * 1_024;

/// The content of a document.
pub struct Document {
    /// The instruction for the call.
    pub instruction: Instruction,
    /// Whether it is `<Reject>`, which is valid for incoming calls only.
    pub rejects: bool,
}

/// The instruction in a response.
pub fn instruction(status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String> {
    if status != 200 {
        return Err(format!("11200: an HTTP {status}"));
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "text/xml" | "application/xml") {
        return Err(format!("12300: the content type {content_type:?}"));
    }
    if body.len() > DOCUMENT_BYTES_MAX {
        return Err("11750: the TwiML is too large".to_owned());
    }
    let text = std::str::from_utf8(body).map_err(|_| "12100: no UTF-8".to_owned())?;
    Ok(parse(text)?.instruction)
}

/// Parses a document.
pub fn parse(text: &str) -> Result<Document, String> {
    let xml = Xml::parse(text).map_err(|error| format!("12100: {error}"))?;
    let response = xml.root_element();
    if response.tag_name().name() != "Response" {
        return Err("12100: the root is no <Response>".to_owned());
    }
    attributes(response, &[])?;
    let verbs = elements(response)?;
    let says = |instruction| Ok(Document { instruction, rejects: false });
    match verbs.as_slice() {
        // <Reject> must be the only verb.
        [] => says(Instruction::HangUp),
        [verb] => match verb.tag_name().name() {
            "Connect" => says(connect(*verb)?),
            "Dial" => says(dial(*verb)?),
            "Hangup" => empty(*verb, &[]).and_then(|()| says(Instruction::HangUp)),
            "Reject" => {
                empty(*verb, &["reason"])?;
                match verb.attribute("reason") {
                    None | Some("rejected" | "busy") => {
                        Ok(Document { instruction: Instruction::HangUp, rejects: true })
                    }
                    Some(reason) => Err(format!("12200: the reason {reason:?}")),
                }
            }
            other => Err(format!("12200: a verb <{other}>")),
        },
        _ => Err("12200: more than one verb".to_owned()),
    }
}

fn dial(verb: Node<'_, '_>) -> Result<Instruction, String> {
    attributes(verb, &["action", "callerId", "method", "timeout", "timeLimit", "answerOnBridge"])?;
    // Without them a call rings for half a minute, and may last for four hours.
    let seconds = |name: &str, most: u32| {
        let seconds = verb.attribute(name).and_then(|text| text.parse().ok());
        let fits = seconds.filter(|seconds| (1..=most).contains(seconds));
        fits.ok_or_else(|| format!("13212, 13216: the {name} of <Dial>"))
    };
    let limit = seconds("timeLimit", 86_400)?;
    seconds("timeout", 600)?;
    let nouns = elements(verb)?;
    let [number] = nouns.as_slice() else { return Err("12200: <Dial> takes one noun".to_owned()) };
    attributes(*number, &["statusCallback", "statusCallbackEvent", "statusCallbackMethod"])?;
    // Without them, a service learns of nothing.
    let url = |node: Node<'_, '_>, name: &str, method: &str| {
        let url = node.attribute(name).filter(|url| is_web_url(url)).map(str::to_owned);
        let fits = node.attribute(method).is_none_or(|method| method == "POST");
        url.filter(|_| fits).ok_or_else(|| format!("13224, 21609: the {name} of <Dial>"))
    };
    let told = Told {
        status_url: url(*number, "statusCallback", "statusCallbackMethod")?,
        back_url: url(verb, "action", "method")?,
    };
    if number.attribute("statusCallbackEvent") != Some("answered") {
        return Err("21626: only the answer is of use".to_owned());
    }
    let to = number.text().unwrap_or_default();
    let caller_id = verb.attribute("callerId").map(str::to_owned);
    if number.tag_name().name() != "Number" || number.children().any(|child| !child.is_text()) {
        return Err("12200: <Dial> takes a <Number>".to_owned());
    }
    match is_e164(to) && caller_id.as_deref().is_none_or(is_e164) {
        true => Ok(Instruction::Dial { to: to.to_owned(), caller_id, seconds: limit, told: Some(told) }),
        false => Err(format!("13223: {to} from {caller_id:?}")),
    }
}

fn connect(verb: Node<'_, '_>) -> Result<Instruction, String> {
    attributes(verb, &[])?;
    let nouns = elements(verb)?;
    let [stream] = nouns.as_slice() else { return Err("12200: <Connect> takes one noun".to_owned()) };
    if stream.tag_name().name() != "Stream" {
        return Err(format!("12200: a noun <{}>", stream.tag_name().name()));
    }
    attributes(*stream, &["url", "name", "track", "statusCallback", "statusCallbackMethod"])?;
    let url = stream.attribute("url").ok_or("12200: <Stream> without url")?;
    let uri: Uri = url.parse().map_err(|_| format!("31920: the url {url:?}"))?;
    // Twilio accepts only `wss`; a service on this machine has no certificate.
    let fits =
        matches!(uri.scheme_str(), Some("wss" | "ws")) && uri.host().is_some_and(|host| !host.is_empty());
    if !fits || uri.query().is_some() || url.contains(['#', '@']) {
        return Err(format!("31920: the url {url:?}"));
    }
    if stream.attribute("track").is_some_and(|track| track != "inbound_track") {
        return Err("31941: a bidirectional stream requires the inbound track".to_owned());
    }
    if stream.attribute("statusCallback").is_some_and(|url| !is_web_url(url)) {
        return Err("12200: the statusCallback".to_owned());
    }
    for parameter in elements(*stream)? {
        empty(parameter, &["name", "value"])?;
        let both = [parameter.attribute("name"), parameter.attribute("value")];
        let [Some(name), Some(value)] = both else {
            return Err("12200: a <Parameter> without name or value".to_owned());
        };
        if parameter.tag_name().name() != "Parameter" || name.is_empty() || name.len() + value.len() > 500 {
            return Err("12200: a <Parameter>".to_owned());
        }
    }
    Ok(Instruction::Connect { media_url: url.to_owned(), status_url: None })
}

/// The child elements; besides them only white space and comments are allowed.
fn elements<'a, 'i>(node: Node<'a, 'i>) -> Result<Vec<Node<'a, 'i>>, String> {
    let stray = |child: &Node<'_, '_>| {
        child.is_pi() || child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty())
    };
    match node.children().find(stray) {
        Some(_) => Err(format!("12200: text in <{}>", node.tag_name().name())),
        None => Ok(node.children().filter(Node::is_element).collect()),
    }
}

fn attributes(node: Node<'_, '_>, known: &[&str]) -> Result<(), String> {
    let name = node.tag_name();
    if name.namespace().is_some() {
        return Err(format!("12200: a namespace on <{}>", name.name()));
    }
    match node.attributes().find(|attribute| !known.contains(&attribute.name())) {
        Some(attribute) => Err(format!("12200: <{} {}>", name.name(), attribute.name())),
        None => Ok(()),
    }
}

fn empty(node: Node<'_, '_>, known: &[&str]) -> Result<(), String> {
    attributes(node, known)?;
    match elements(node)?.is_empty() {
        true => Ok(()),
        false => Err(format!("12200: <{}> must be empty", node.tag_name().name())),
    }
}
