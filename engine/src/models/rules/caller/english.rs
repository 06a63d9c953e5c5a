//! The English that instructions to a caller are written in.

/// Words before an instruction that say nothing.
#[rustfmt::skip]
pub(super) const OPENERS: [&str; 27] = [
    "after that", "at the end", "in the end", "at first", "then", "first", "firstly", "next", "finally", "also",
    "please", "now", "second", "secondly", "third", "lastly", "afterwards", "and", "but", "so", "politely",
    "briefly", "kindly", "just", "simply", "again", "later",
];

/// Ways to tell somebody what to do.
#[rustfmt::skip]
pub(super) const DUTIES: [&str; 27] = [
    "you should", "you must", "you need to", "you have to", "you are to", "you will", "you'll",
    "your task is to", "your goal is to", "your job is to", "your aim is to", "the goal is to",
    "the task is to", "try to", "you try to", "make sure to", "be sure to", "make sure you", "remember to",
    "don't forget to", "do not forget to", "the caller should", "the caller must", "call to", "you call to",
    "you are calling to", "you're calling to",
];

/// Ways to tell what somebody wants to do.
#[rustfmt::skip]
pub(super) const WISHES: [&str; 14] = [
    "you want to", "you would like to", "you'd like to", "you wish to", "you hope to", "you plan to",
    "you intend to", "you are trying to", "you're trying to", "the caller wants to", "the caller would like to",
    "the user wants to", "the customer wants to", "you decide to",
];

/// Ways to tell what somebody wants.
#[rustfmt::skip]
pub(super) const WANTS: [&str; 9] = [
    "you want", "you would like", "you'd like", "you wish for", "the caller wants", "the caller would like",
    "the user wants", "the customer wants", "request",
];

/// Ways to tell what somebody lacks.
#[rustfmt::skip]
pub(super) const LACKS: [&str; 9] = [
    "you need", "the caller needs", "you are looking for", "you're looking for", "you have a question",
    "you have questions", "you are interested in", "you wonder", "you are wondering",
];

/// What callers do by asking for it.
#[rustfmt::skip]
pub(super) const DEEDS: [&str; 89] = [
    "book", "order", "reserve", "cancel", "buy", "return", "change", "move", "reschedule", "postpone",
    "schedule", "make", "arrange", "rent", "hire", "report", "confirm", "pay", "get", "sign", "register",
    "subscribe", "renew", "extend", "update", "track", "place", "upgrade", "transfer", "leave", "add", "remove",
    "check", "send", "pick", "exchange", "apply", "open", "close", "join", "switch", "collect", "dispute",
    "activate", "deactivate", "unsubscribe", "block", "file", "purchase", "choose", "negotiate", "receive",
    "see", "visit", "attend", "enrol", "enroll", "replace", "repair", "fix", "reset", "unlock", "withdraw",
    "deposit", "borrow", "donate", "bring", "correct", "shorten", "split", "redeem", "use", "stay", "start",
    "end", "stop", "sell", "speak", "talk", "try", "learn", "know", "discuss", "complete", "set", "submit",
    "take", "swap", "hear",
];

/// Verbs before "that" that only say something.
#[rustfmt::skip]
pub(super) const STATING: [&str; 19] = [
    "say", "mention", "explain", "state", "claim", "complain", "insist", "emphasise", "emphasize", "argue",
    "admit", "announce", "note", "report", "confirm", "declare", "remark", "repeat", "answer",
];

/// First words of an instruction about behaviour.
#[rustfmt::skip]
pub(super) const BEHAVIOUR: [&str; 53] = [
    "be", "stay", "remain", "act", "sound", "behave", "pretend", "keep", "wait", "listen", "answer", "respond",
    "reply", "follow", "stick", "imagine", "interrupt", "hesitate", "pause", "play", "hang", "thank", "expect",
    "react", "show", "get angry", "become", "finish", "end the", "end politely", "let the", "let them", "allow",
    "speak slowly", "speak quickly", "speak fast", "speak clearly", "speak quietly", "speak loudly", "speak in",
    "speak like", "speak only", "speak english", "talk slowly", "talk fast", "talk like", "use short",
    "use simple", "use polite", "use few", "use a", "do nothing", "say nothing",
];

/// First words of a description of somebody or something.
#[rustfmt::skip]
pub(super) const DESCRIPTIONS: [&str; 22] = [
    "the assistant", "the agent", "it should", "they should", "they must", "this is", "you test",
    "you are testing", "you are", "you're", "you speak", "you talk", "you sound", "you call", "you phone",
    "you ring", "you answer", "you have never", "you behave", "you keep", "the call", "you know",
];

/// People whom a caller asks for, to speak with them.
#[rustfmt::skip]
pub(super) const PEOPLE: [&str; 14] = [
    "manager", "supervisor", "owner", "doctor", "human", "person", "operator", "boss", "someone", "somebody",
    "colleague", "chef", "technician", "director",
];
