//! The subset of Plivo XML for a voice service: plivo.com/docs/voice/xml/routing (`Hangup`, `Dial`) and
//! plivo.com/docs/voice-agents/audio-streaming/xml/stream.
use roxmltree::{Document, Node};

use super::api::is_number;
use crate::fakes::carrier::wire::{Instruction, Told};

const BYTES_MAX: usize = 100_000;
const URL_BYTES_MAX: usize = 2_048;
const EXTRA_HEADERS_BYTES_MAX: usize = 512;

pub(super) fn read(status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String> {
    if !(200..300).contains(&status) {
        return Err(format!("7011 Error Reaching Answer URL: {status}"));
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "application/xml" | "text/xml") {
        return Err(format!("8011 Invalid Answer XML: the type is {content_type}"));
    }
    let text = std::str::from_utf8(body).map_err(|error| format!("8011 Invalid Answer XML: {error}"))?;
    if text.len() > BYTES_MAX {
        return Err("8011 Invalid Answer XML: more than 100 KB".to_owned());
    }
    let document = Document::parse(text).map_err(|error| format!("8011 Invalid Answer XML: {error}"))?;
    let root = document.root_element();
    if root.tag_name().name() != "Response" || root.attributes().len() > 0 {
        return Err("the root is not <Response>".to_owned());
    }
    if root.children().any(|child| !child.is_element() && !is_blank(&child)) {
        return Err("<Response> must contain only elements".to_owned());
    }
    let elements: Vec<Node<'_, '_>> = root.children().filter(Node::is_element).collect();
    match elements.as_slice() {
        [] => Ok(Instruction::HangUp),
        [element] => match element.tag_name().name() {
            "Stream" => stream(element),
            "Hangup" => hang_up(element),
            "Dial" => dial(element),
            name => Err(format!("<{name}> is not supported")),
        },
        _ => Err("more than one element in <Response>".to_owned()),
    }
}

fn stream(element: &Node<'_, '_>) -> Result<Instruction, String> {
    for attribute in element.attributes() {
        let value = attribute.value();
        let fits = match attribute.name() {
            "bidirectional" | "keepCallAlive" => value == "true",
            "audioTrack" => value == "inbound",
            "contentType" => value == "audio/x-mulaw;rate=8000",
            "streamTimeout" => value.parse().is_ok_and(|seconds: u32| (1..=86_400).contains(&seconds)),
            "statusCallbackUrl" => value.starts_with("https://") || value.starts_with("http://"),
            "statusCallbackMethod" => matches!(value, "GET" | "POST"),
            "extraHeaders" => value.len() <= EXTRA_HEADERS_BYTES_MAX,
            _ => false,
        };
        if !fits {
            return Err(format!("{} of <Stream> must not be {value:?}", attribute.name()));
        }
    }
    // Without the first attribute the service would not be heard, and without the second the call would end at once. The
    // documented default of the third is contradictory.
    for needed in ["bidirectional", "keepCallAlive", "contentType"] {
        element.attribute(needed).ok_or_else(|| format!("<Stream> needs {needed}"))?;
    }
    if element.children().any(|child| !child.is_text()) {
        return Err("<Stream> must contain only its URL".to_owned());
    }
    let url = element.text().unwrap_or_default();
    let is_socket = url.starts_with("wss://") || url.starts_with("ws://");
    if !is_socket || url.len() > URL_BYTES_MAX || url.contains(char::is_whitespace) {
        return Err(format!("<Stream> must not open {url:?}"));
    }
    Ok(Instruction::Connect { media_url: url.to_owned(), status_url: None })
}

fn hang_up(element: &Node<'_, '_>) -> Result<Instruction, String> {
    for attribute in element.attributes() {
        if attribute.name() != "reason" || !matches!(attribute.value(), "rejected" | "busy") {
            return Err(format!("{} of <Hangup> must not be {:?}", attribute.name(), attribute.value()));
        }
    }
    match element.has_children() {
        true => Err("<Hangup> must be empty".to_owned()),
        false => Ok(Instruction::HangUp),
    }
}

fn dial(element: &Node<'_, '_>) -> Result<Instruction, String> {
    let known =
        ["action", "callbackMethod", "callbackUrl", "callerId", "method", "redirect", "timeLimit", "timeout"];
    if let Some(other) = element.attributes().find(|attribute| !known.contains(&attribute.name())) {
        return Err(format!("{} of <Dial> is not supported", other.name()));
    }
    // Without them a call may last for four hours, and rings for as long as the other carrier lets it.
    let seconds = |name: &str| {
        let seconds = element.attribute(name).and_then(|text| text.parse().ok());
        seconds.filter(|seconds: &u32| *seconds > 0).ok_or_else(|| format!("<Dial> needs {name}"))
    };
    let limit = seconds("timeLimit")?;
    seconds("timeout")?;
    // Without them, a service learns of nothing.
    let url = |name: &str, method: &str| {
        let url = element.attribute(name).filter(|url| url.starts_with("http")).map(str::to_owned);
        let is_post = element.attribute(method).is_none_or(|method| method == "POST");
        url.filter(|_| is_post).ok_or_else(|| format!("<Dial> needs {name}"))
    };
    let told = Told { status_url: url("callbackUrl", "callbackMethod")?, back_url: url("action", "method")? };
    if element.attribute("redirect").is_some_and(|redirect| redirect != "true") {
        return Err("<Dial> must go on with its action".to_owned());
    }
    let caller_id = element.attribute("callerId");
    let children: Vec<Node<'_, '_>> = element.children().collect();
    let [number] = children.as_slice() else { return Err("<Dial> takes one <Number>".to_owned()) };
    let to = number.text().unwrap_or_default();
    let fits = number.tag_name().name() == "Number" && number.attributes().len() == 0;
    match fits && is_number(to) && caller_id.is_none_or(is_number) {
        true => {
            let caller_id = caller_id.map(|digits| format!("+{digits}"));
            Ok(Instruction::Dial { to: format!("+{to}"), caller_id, seconds: limit, told: Some(told) })
        }
        false => Err(format!("<Dial> must not call {to:?} from {caller_id:?}")),
    }
}

fn is_blank(node: &Node<'_, '_>) -> bool {
    node.is_comment() || node.text().is_some_and(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(xml: &str) -> Result<Instruction, String> {
        read(200, "text/xml", xml.as_bytes())
    }

    #[test]
    fn rejects_invalid_documents() {
        let good = concat!(
            r#"<Response><Stream bidirectional="true" keepCallAlive="true" "#,
            r#"contentType="audio/x-mulaw;rate=8000">wss://h/m?a=1&amp;b=2</Stream></Response>"#
        );
        let connect = Instruction::Connect { media_url: "wss://h/m?a=1&b=2".to_owned(), status_url: None };
        assert_eq!(of(good), Ok(connect));
        assert_eq!(of("<Response/>"), Ok(Instruction::HangUp));
        assert_eq!(of(r#"<Response> <Hangup reason="busy"/> </Response>"#), Ok(Instruction::HangUp));
        let bad = [
            good.replace("&amp;", "&"),
            good.replace("wss:", "https:"),
            good.replace(r#" keepCallAlive="true""#, ""),
            good.replace("bidirectional", "Bidirectional"),
            good.replace("8000", "16000"),
            good.replace("Stream", "stream"),
            good.replace("Response", "response"),
            good.replace("<Response>", "<Response>hello"),
            good.replace("</Response>", "<Hangup/></Response>"),
            format!("{good}{good}"),
            format!("x{good}"),
            r#"<Response><Hangup reason="tired"/></Response>"#.to_owned(),
            r#"<Response><Reject/></Response>"#.to_owned(),
            String::new(),
        ];
        for xml in bad {
            assert!(of(&xml).is_err(), "{xml}");
        }
        assert!(read(404, "text/xml", good.as_bytes()).is_err());
        assert!(read(200, "text/html", good.as_bytes()).is_err());
    }
}
