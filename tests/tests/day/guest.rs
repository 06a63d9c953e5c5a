//! Who talks to an assistant in the browser: lines at fixed times, then silence, or the end.
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use sidetone_engine::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};

use crate::time::{Time, TimePort};

/// A guest's end of the socket is not modelled: what it hears is in the call log.
pub struct Guest {
    time: Arc<Time>,
    /// What it sends when, oldest first.
    lines: VecDeque<(i64, String)>,
    is_open: bool,
}

impl Guest {
    /// Says these lines, one every `pause_ms`, then hangs up.
    pub fn talking(time: &Arc<Time>, lines: &[&str], pause_ms: i64) -> Self {
        let said = lines.iter().map(|line| json!({"type": "user_text", "text": line}).to_string());
        let all = said.chain([json!({"type": "hang_up"}).to_string()]);
        let now_ms = TimePort(time.clone()).now_ms();
        let lines = (1..).map(|nth| now_ms + nth * pause_ms).zip(all).collect();
        Self { time: time.clone(), lines, is_open: true }
    }

    /// Says nothing until the service ends the conversation.
    pub fn silent(time: &Arc<Time>) -> Self {
        Self { time: time.clone(), lines: VecDeque::new(), is_open: true }
    }
}

impl Socket for Guest {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(async move {
            let due_ms = self.lines.front().map(|(at_ms, _)| *at_ms).filter(|at_ms| *at_ms <= until_ms);
            self.time.until(due_ms.unwrap_or(until_ms)).await;
            match due_ms.and_then(|_| self.lines.pop_front()) {
                Some((_, line)) => Received::message(SocketMessage::Text(line)),
                None => Received::Nothing,
            }
        })
    }

    fn send(&mut self, _: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        let sent = if self.is_open { Ok(()) } else { Err(Gone) };
        Box::pin(async move { sent })
    }

    fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
        self.is_open = false;
        Box::pin(async {})
    }
}
